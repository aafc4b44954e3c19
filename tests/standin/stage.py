"""What a program on a stand-in driver begins with. ``PROGRAM ARTIFACT COPY KERNELS BACKEND ...``, with the stand-ins on
LD_LIBRARY_PATH: opens the artifact and has the stand-in run its kernels, by the CPU's code out of the copy (see
kernels.c). No driver is used yet. BACKEND may be "host", which needs no stand-in."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from scenarios import SCENARIOS, Wrong

import offload

LIBRARIES = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so.6"}

artifact, copy, kernels, backend, *words = sys.argv[1:]


def open_library() -> Any:
    """The artifact, on the backend asked for at the first `attempt`."""
    return offload.load(artifact)


def open_driver(library: Any) -> ctypes.CDLL:
    """The stand-in of the backend, ready to run the library's kernels."""
    driver = ctypes.CDLL(LIBRARIES[backend])
    driver.standin_calls.restype = ctypes.c_char_p
    runner = ctypes.CDLL(kernels)
    runner.kernels_load(copy.encode())
    for kernel in library.metadata.kernels:
        runner.kernels_add(kernel.module.encode(), kernel.name.encode())
    driver.standin_kernels(runner.kernels_run)
    return driver


def refusal(call: Any, *args: Any) -> str:
    """What a call says that is refused."""
    try:
        call(*args)
    except offload.SignatureError as error:
        return str(error)
    raise AssertionError("it was not refused")


def attempt(library: Any, name: str, device: int = 0) -> str:
    """Runs a scenario: "right", or what went wrong; a `DeviceError` begins with its class."""
    try:
        library.use(backend)
        if device:
            library._native.api.mgpuSetDefaultDevice(device)
            library._native.check()
        SCENARIOS[name](library)
    except offload.DeviceError as error:
        return f"DeviceError: {error}"
    except Wrong as error:
        return f"wrong: {error}"
    return "right"
