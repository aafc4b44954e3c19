"""Host arrays for kernels on a GPU: copied there before the call, and back after it, where the caller says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from offload.runtime.array import DeviceArray
from offload.runtime.device import Device
from offload.runtime.dtypes import Mismatch
from offload.runtime.memory import ADDRESSES, array_over
from offload.runtime.native import Native
from offload.runtime.views import view_of

if TYPE_CHECKING:
    from offload.runtime.arguments import MemrefPacker
    from offload.runtime.calls import Callee
    from offload.runtime.pointers import PointerPacker


class Staged:
    """An array that a call may copy to the device. ``back`` says whether what the call wrote is copied back."""

    __slots__ = ("array", "back")

    def __init__(self, array: Any, back: bool = True) -> None:
        if not isinstance(back, bool):
            raise TypeError(f"back is True or False, not {back!r}")
        self.array = array
        self.back = back

    def __repr__(self) -> str:
        return f"stage({self.array!r}{'' if self.back else ', back=False'})"


def wanted(native: Native, args: Iterable[Any]) -> bool:
    """Whether a call with these arguments has anything to stage."""
    return native.auto_stage or any(type(value) is Staged for value in args)


_EFFORT = 100_000
"""Candidates to look at, milliseconds of them: whether two strided arrays meet can take any time to find out."""


def _overlap(one: Any, other: Any) -> bool:
    """Whether two arrays may have an element in common; those that lie between each other's, x[::2] and x[1::2], have
    none."""
    import numpy

    try:
        return bool(numpy.shares_memory(one, other, max_work=_EFFORT))  # type: ignore[arg-type]  # any number
    except RuntimeError:  # NumPy's TooHardError, which has changed its place
        return True


class Staging:
    """The copies of one call."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._copies: list[tuple[Any, DeviceArray, bool]] = []

    def __bool__(self) -> bool:
        return bool(self._copies)

    def take_all(
        self, callee: Callee, packers: Iterable[MemrefPacker | PointerPacker | None], args: Iterable[Any]
    ) -> tuple[Any, ...]:
        """The arguments of a call, each as `take` has it; those without a packer are scalars. Raises `SignatureError`,
        `DeviceError`."""
        taken: list[Any] = []
        try:
            for value, packer in zip(args, packers, strict=True):
                taken.append(value if packer is None else self.take(packer, value))
        except Mismatch as mismatch:
            raise callee.refuse(len(taken), mismatch) from None
        return tuple(taken)

    def take(self, packer: MemrefPacker | PointerPacker, value: Any) -> Any:
        """What stands for ``value`` in the call: an array on the device, or the array itself where the function takes
        host memory or the CPU is the device. Raises `Mismatch`, `DeviceError`."""
        array, back = (value.array, value.back) if type(value) is Staged else (value, True)
        back = back and not packer.argument.read_only
        if (
            array is None
            or packer.space != "device"
            or isinstance(array, (DeviceArray, *ADDRESSES))
            or (back and self._native.backend() == "host")
        ):
            return array
        view = view_of(array)
        if self._native.backend() == "host":  # it may be read-only: the caller says that it is only read
            packer.check(view, writes=False)
            host = array_over(view.pointer, packer.array_dtype(view), view.shape, view.strides, owner=view)
            # What writes to it all the same does so in a copy, as on a GPU: its memory may be a constant, or a file's.
            return self._copy(host, back) if view.readonly and not packer.argument.read_only else host
        if view.places != ("host",):
            return array
        packer.check(view, writes=back)
        host = array_over(view.pointer, packer.array_dtype(view), view.shape, view.strides, owner=view)
        return self._copy(host, back)

    def _copy(self, host: Any, back: bool) -> DeviceArray:
        for index, (other, device, other_back) in enumerate(self._copies):
            same = other.ctypes.data == host.ctypes.data and other.shape == host.shape and other.strides == host.strides
            if same and other.dtype == host.dtype:
                self._copies[index] = (other, device, back or other_back)
                return device
            if (back or other_back) and _overlap(host, other):
                raise Mismatch(
                    "an array that shares memory with another one that is staged",
                    "pass copies, or put them on the device with lib.device.array(...)",
                )
        device = Device(self._native).array(host)
        self._copies.append((host, device, back))
        return device

    def finish(self) -> None:
        """Copies back what the call wrote, which has to be done. Raises `DeviceError`."""
        for host, device, back in self._copies:
            if back:
                host[...] = device.numpy()
