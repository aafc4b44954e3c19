"""The mgpu runtime inside a loaded artifact: its function table, and its errors as exceptions."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from offload.errors import ArtifactError, DeviceError
from offload.runtime import abi
from offload.runtime.entered import Entered
from offload.runtime.pickled import refusal

if TYPE_CHECKING:
    from offload.runtime.pending import Mark


_entered: dict[int, Entered] = {}
"""By the address of a function table: a file that is loaded twice has one runtime."""


class Native:
    """The function table of one loaded library.

    ``api`` has every function of mgpu_functions.def as an attribute. After a call that can fail, `check`
    turns the calling thread's kept error into a `DeviceError`."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        """Raises `ArtifactError` where the library has no runtime or one of another ABI."""
        self.file = str(Path(name).absolute())
        """The library's file, whatever becomes of the current folder."""
        try:
            entry = library.offload_api
        except AttributeError:
            raise ArtifactError(
                f"{name}: it does not export offload_api; it was linked without the mgpu runtime, build it again"
            ) from None
        entry.restype = ctypes.POINTER(abi.Api)
        entry.argtypes = (ctypes.c_uint32,)
        table = entry(abi.ABI_VERSION)
        if not table:
            raise ArtifactError(
                f"{name}: its mgpu runtime does not speak version {abi.ABI_VERSION} of the ABI; build it "
                "again with this version of offload, or install the version that built it"
            )
        size = table.contents.size
        if size < ctypes.sizeof(abi.Api):
            missing = [entry[1] for entry in abi.FUNCTIONS if getattr(abi.Api, entry[1]).offset >= size]
            raise ArtifactError(f"{name}: its mgpu runtime is too old, it lacks {', '.join(missing)}; build it again")
        self.table: int = ctypes.addressof(table.contents)
        # Reading a member of the table makes a new function object each time, so they are read once.
        self.api: Any = SimpleNamespace(**{name: getattr(table.contents, name) for _, name, _ in abi.FUNCTIONS})
        self._memories: dict[tuple[str, int], DeviceMemory] = {}
        self.entered = _entered.setdefault(self.table, Entered(self.api))
        self.auto_stage = False
        self._told = ""
        # Modules lose their names when the interpreter ends.
        self._no_error, self._at = abi.KeptError, ctypes.byref
        self._is_ending, self.process = sys.is_finalizing, os.getpid

    def __reduce__(self) -> NoReturn:
        raise refusal("what a library has on a device", "pickle the library, and make it anew from that")

    def check(self) -> None:
        """Raises the calling thread's kept error, if there is one, and clears it."""
        code = self.api.mgpuGetLastError()
        if code != abi.SUCCESS:
            raise self.error(code)

    def error(self, code: int) -> DeviceError:
        """The error of that code, with the message that the runtime keeps for the calling thread."""
        message: bytes | None = self.api.mgpuGetLastErrorMessage()
        return DeviceError((message or b"").decode("utf-8", "replace") or f"error {code} of the runtime", code)

    def at_end(self, work: Callable[[], None], process: int, each: bool = True) -> DeviceError | None:
        """Does what an object has to do when it goes, which may be in the midst of any call of the thread: an error
        that is kept for that call neither hinders it nor is lost, and what fails here is not that call's. Returns what
        failed; unless it tells ``each``, the same once: a device that is lost takes none of many arrays back. None too
        where the interpreter ends, or where the object is of another ``process``: the child of a fork has none of its
        parent's work."""
        aside = self._no_error()
        exchange, at = self.api.mgpuErrorExchange, self._at(aside)
        exchange(at)
        try:
            work()
        finally:
            exchange(at)
        return self.told(aside.code, aside.message, process, each) if aside.code else None

    def told(self, code: int, said: bytes, process: int, each: bool) -> DeviceError | None:
        """What `at_end` returns of what failed."""
        if self._is_ending() or process != self.process():
            return None
        message = said.decode("utf-8", "replace")
        if not each and message == self._told:
            return None
        self._told = message
        return DeviceError(message, code)

    def use(self, backend: str | None) -> None:
        """Fixes the backend; None lets it be chosen again. Raises `DeviceError` for one that is unknown or not here."""
        if not isinstance(backend, str | None):
            raise TypeError(f"the name of a backend is a str, not {type(backend).__name__}")
        # C would take what is before a NUL; no backend has a backslash in its name.
        name = None if backend is None else backend.replace("\0", "\\0").encode(errors="backslashreplace")
        self.entered.step_out()
        self.api.mgpuBackendUse(name)
        code = self.api.mgpuGetLastError()
        # Who calls Python does not know the function of C that asks.
        error = DeviceError(str(self.error(code)).replace("mgpuBackendUse", "use()", 1), code) if code else None
        self.entered.step_in()
        if error is not None:
            raise error

    def backend(self) -> str:
        """The name of the backend in use, chosen now if none was. Raises `DeviceError` where there is
        none."""
        name: bytes | None = self.api.mgpuBackendName()
        if name is None:
            self.check()
            raise DeviceError("there is no backend with a device here", abi.ERROR_NO_DEVICE)
        return name.decode()

    def device_of_thread(self) -> int:
        """The index of the calling thread's device."""
        return int(self.api.mgpuGetDefaultDevice())

    def device_of_work(self) -> int:
        """The index of the device that work of the calling thread goes to: that of its stream. Raises `DeviceError`."""
        device = int(self.api.mgpuStreamDevice(None))
        self.check()
        return device

    @contextlib.contextmanager
    def on_device(self, index: int) -> Iterator[None]:
        """Makes a device the calling thread's for a while. Raises `DeviceError` where there is no such device."""
        backend = self.backend()
        owner = object()
        self.entered.enter_device(backend, owner, index)
        try:
            self.check()
            yield
        finally:
            self.entered.leave(backend, owner)

    def memory(self) -> DeviceMemory:
        """The memory of the calling thread's device of the backend in use. Raises `DeviceError`."""
        backend = self.backend()
        key = (backend, int(self.api.mgpuGetDefaultDevice()))
        if key not in self._memories:
            self._memories.setdefault(key, DeviceMemory(self, backend, key[1]))
        return self._memories[key]


class DeviceMemory:
    """The memory of one device. Its stream knows the backend and the device for ever, so memory stays usable,
    and goes back to where it came from, after another backend or device was chosen. All calls wait for
    completion."""

    __slots__ = ("__weakref__", "_native", "_process", "_stream", "backend", "device")

    def __init__(self, native: Native, backend: str, device: int) -> None:
        self.backend = backend
        self.device = device
        self._native = native
        self._process = native.process()
        self._stream: int | None = native.api.mgpuStreamCreate()
        native.check()

    def __del__(self) -> None:
        if getattr(self, "_stream", None):
            # Of a circle of garbage, what is in the memory may go later: it takes the thread's own stream then.
            stream, self._stream = self._stream, None
            self._native.at_end(lambda: self._native.api.mgpuStreamDestroy(stream), self._process)

    def allocate(self, size: int, shared: bool = False) -> int:
        """The address of ``size`` new bytes; 0 for none. With ``shared`` the CPU can use them too. Raises
        `DeviceError`."""
        pointer: int | None = self._native.api.mgpuMemAlloc(size, self._stream, shared)
        try:
            self._finish()
        except DeviceError:
            with contextlib.suppress(DeviceError):
                self.free(pointer or 0)
            raise
        return pointer or 0

    def free(self, pointer: int) -> None:
        """Gives an allocation back, behind what is on the memory's stream, whatever the thread is at. Raises
        `DeviceError`."""
        freed = self._native.at_end(
            lambda: self._native.api.mgpuMemFree(pointer, self._stream), self._process, each=False
        )
        if freed is not None:
            raise freed

    def free_after(self, mark: Mark) -> DeviceError | None:
        """Lets giving it back start after the mark, whatever the thread is at. Returns what failed."""
        return mark.hold_at_end(self._stream, self._native)

    def free_after_others(self) -> DeviceError | None:
        """Lets giving it back start after what other packages have put on the device's default stream: they let go of
        an array as soon as they have launched what uses it. Whatever the thread is at; returns what failed."""
        return self._native.at_end(self._wait_for_others, self._process, each=False)

    def _wait_for_others(self, default: int = abi.DEFAULT_STREAM) -> None:  # modules lose their names at the end
        api = self._native.api
        if api.mgpuBackendName() != self.backend.encode():  # whose default stream cannot be named now
            return
        before = api.mgpuGetDefaultDevice()
        api.mgpuSetDefaultDevice(self.device)
        # While a graph is captured, nothing may be asked of that stream: the driver says so, and loses nothing.
        if api.mgpuStreamCapturing(default) or api.mgpuGetLastError():
            api.mgpuSetDefaultDevice(before)
            return
        api.mgpuStreamWaitStream(self._stream, default)
        api.mgpuSetDefaultDevice(before)

    def check(self) -> None:
        """Raises the calling thread's kept error, if there is one."""
        self._native.check()

    def copy(self, to: int, source: int, size: int) -> None:
        """Copies bytes between any two of device and host memory. Raises `DeviceError`."""
        api, stream = self._native.api, self._stream
        try:
            api.mgpuMemcpy(to, source, size, stream)
        finally:  # after an interrupt, too: then nobody keeps the memory
            api.mgpuStreamSynchronize(stream)
        self._native.check()

    def clear(self, pointer: int, size: int) -> None:
        """Fills with zero bytes. Raises `DeviceError`."""
        api, stream = self._native.api, self._stream
        try:
            api.mgpuMemset8(pointer, 0, size, stream)
        finally:
            api.mgpuStreamSynchronize(stream)
        self._native.check()

    def _finish(self) -> None:
        self._native.api.mgpuStreamSynchronize(self._stream)
        self._native.check()
