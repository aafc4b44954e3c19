"""A kernel with what it is launched with."""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING, Any

from offload.runtime.pending import Pending
from offload.runtime.plans import Caller, share_plan

if TYPE_CHECKING:
    from offload.runtime.kernel import Kernel


class Launch(Caller):
    """A kernel with its grid and block (``sizes``), stream, dynamic workgroup memory and cluster, ready to call.

    A call launches, and waits for the kernel where there is no stream; with one it returns a `Pending`. It raises
    `SignatureError` for arguments that do not fit, `DeviceError` for what fails."""

    __slots__ = ("stream",)  # where the extension finds it

    def __init__(
        self,
        kernel: Kernel,
        sizes: tuple[int, ...],
        stream: Any,
        handle: int | None,
        shared: int,
        cluster: tuple[int, int, int],
    ) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.stream = stream
        self.handle = handle
        self.shared = shared
        self.cluster = cluster
        # The calls until it is armed; each takes one out, and whoever takes the last arms it.
        self._unarmed = kernel.calls_until_armed(self)

    @property
    def alike(self) -> tuple[object, ...]:
        """What launches on streams have in common that may share a plan."""
        return self.sizes, self.cluster, self.shared

    def again(self, stream: Any, plan: Any) -> Launch:
        """The same on that stream, with its plan."""
        made = Launch.__new__(Launch)
        made.__dict__.update(self.__dict__)
        made._unarmed = []
        made.stream = stream
        made.handle = None if stream is None else stream.handle
        share_plan(plan, made)
        return made

    def _call(self, /, *args: Any, **kwargs: Any) -> Pending | None:
        pending = self.kernel.launch(self, args, kwargs)
        if self._unarmed:
            try:
                last = self._unarmed.pop()  # two threads never take the same
            except IndexError:
                last = False
            if last:
                self.kernel.arm(self)
        return pending

    def __repr__(self) -> str:
        sizes = f"grid={self.sizes[:3]}, block={self.sizes[3:]}"
        stream = "" if self.stream is None else f", on {self.stream!r}"
        shared = f", shared_bytes={self.shared}" if self.shared else ""
        cluster = f", cluster={self.cluster}" if any(self.cluster) else ""
        return f"<offload launch of {self.kernel.signature.name}: {sizes}{stream}{shared}{cluster}>"

    def __reduce__(self) -> tuple[Any, ...]:
        cluster = self.cluster if any(self.cluster) else None
        return getitem, (self.kernel, (self.sizes[:3], self.sizes[3:], self.stream, self.shared, cluster))

    def _launched(self, args: tuple[Any, ...]) -> Pending:
        """What is left to do when the extension has put the kernel on the stream."""
        return self.kernel.put(self.stream.here(), args)

    def _failed(self, code: int) -> None:
        raise self.kernel.error(code)
