"""Which backend libraries use in this process, and why: `offload.backend`."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Iterator

from offload.config import environment
from offload.paths import package_file
from offload.runtime import abi
from offload.runtime.device import DeviceInfo, all_devices
from offload.runtime.native import Native


class Backend(str):
    """The name of a backend, "cuda", "hip" or "host", with the reason for it.

    ``why`` is a sentence; ``devices`` are those of the backend that are here."""

    why: str
    devices: tuple[DeviceInfo, ...]

    def __repr__(self) -> str:
        return f"<Backend {str(self)!r}: {self.why}>"


_lock = threading.RLock()  # a signal's handler may ask, too


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # the thread that had it is not in this process


os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def choosing() -> Iterator[None]:
    """One thread at a time: whoever chooses a backend sees what that is like, and every library has what was chosen
    last, those too that other threads are loading."""
    with _lock:
        yield


@functools.cache
def _runtime() -> Native:
    """A runtime of its own, so that asking changes nothing for any library."""
    path = package_file("lib/libmgpu.so")
    return Native(ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW), path.name)


def backend_in_use(chosen: str | None) -> Backend:
    """The backend that libraries take, if they have code for its devices; ``chosen`` is what `offload.use` was given.

    Raises `DeviceError` where what was chosen is unknown or has no device here."""
    with choosing():
        return _in_use(_runtime(), chosen)


def _in_use(native: Native, chosen: str | None) -> Backend:
    native.use(chosen)
    backend = Backend(native.backend())
    devices = all_devices(native)
    backend.devices = tuple(device for device in devices if device.backend == backend)
    if chosen is not None:
        backend.why = f'offload.use("{chosen}") chose it'
    elif name := environment("OFFLOAD_BACKEND"):
        backend.why = f'OFFLOAD_BACKEND is "{name}"'
    else:
        here = ", ".join(f"{device.name} ({device.chip})" for device in backend.devices)
        skipped = "".join(
            f"; {other}: {_why_not(native, other)}" for other in abi.BACKENDS[: abi.BACKENDS.index(backend)]
        )
        backend.why = f"it is the first of {', '.join(abi.BACKENDS)} with a device here: {here}{skipped}"
    return backend


def check_backend(backend: str) -> None:
    """Raises `DeviceError` where the backend is unknown or has no device here."""
    with _lock:
        native = _runtime()
        native.use(backend)
        native.use(None)


def absence(backend: str) -> str:
    """Why a backend has no device here, as the runtime tells it; empty where it has one."""
    with _lock:
        native = _runtime()
        return "" if native.api.mgpuDeviceCount(backend.encode()) else _why_not(native, backend)


def _why_not(native: Native, backend: str) -> str:
    """What the runtime says where a backend without a device is asked for by name."""
    code = native.api.mgpuBackendUse(backend.encode())
    said = str(native.error(code)).partition("no device here: ")[2].rstrip(".") if code else "there is a device by now"
    native.api.mgpuGetLastError()
    native.api.mgpuBackendUse(None)
    return said or "no device"
