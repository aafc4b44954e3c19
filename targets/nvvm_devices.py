"""NVIDIA GPUs in this machine: the driver is asked through cuda.bindings where that is installed, else by ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from offload.targets.devices import Device, Discovery, Refused, optional_module, with_version

_LIBRARY = "libcuda.so.1"
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # CUdevice_attribute


def discover() -> Discovery:
    """The devices. Never raises: no driver means none, and a note that says why.

    Initializes the driver in this process. A package that does not work is noted, and the driver asked without it; what
    the driver answers is final.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        # Importing cuda.bindings would take a while, and it loads the same library.
        return Discovery(notes=(f"{_LIBRARY} cannot be loaded ({error})",))
    notes: list[str] = []
    ways: list[tuple[Any, str]] = [(_Library(library), f"{_LIBRARY} alone")]
    if (bindings := optional_module("cuda.bindings.driver", notes)) is not None:
        ways.insert(0, (bindings, with_version("cuda.bindings", "cuda-bindings")))
    for driver, through in ways:
        try:
            devices = _devices(driver, through, notes)
            return Discovery(tuple(devices), through if devices else "", tuple(notes))
        except Refused as refusal:
            return Discovery(notes=(*notes, f"{through}: {refusal}"))
        except Exception as error:  # of the package's own, of any kind; an AttributeError where ctypes lacks a symbol
            notes.append(f"{through} does not work: {error}")
    return Discovery(notes=tuple(notes))


class _Library:
    """The calls that are needed, as cuda.bindings.driver has them: each returns its status, then what it gives."""

    CUdevice_attribute = int

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def cuInit(self, flags: int) -> tuple[int]:
        return (self._library.cuInit(flags),)

    def cuGetErrorName(self, status: int) -> tuple[int, bytes]:
        name = ctypes.c_char_p()
        return self._library.cuGetErrorName(status, ctypes.byref(name)), name.value or b""

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return self._number("cuDriverGetVersion")

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return self._number("cuDeviceGetCount")

    def cuDeviceGet(self, index: int) -> tuple[int, int]:
        return self._number("cuDeviceGet", index)

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> tuple[int, int]:
        return self._number("cuDeviceGetAttribute", attribute, device)

    def cuDeviceGetName(self, size: int, device: int) -> tuple[int, bytes]:
        name = ctypes.create_string_buffer(size)
        return self._library.cuDeviceGetName(name, size, device), name.value

    def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:
        size = ctypes.c_size_t()
        return self._library.cuDeviceTotalMem_v2(ctypes.byref(size), device), size.value

    def _number(self, call: str, *arguments: int) -> tuple[int, int]:
        value = ctypes.c_int()
        return getattr(self._library, call)(ctypes.byref(value), *arguments), value.value


def _ask(driver: Any, call: str, *arguments: Any) -> Any:
    """What a call gives. Raises Refused where its status is not success."""
    status, *values = getattr(driver, call)(*arguments)
    if int(status) != 0:
        answered, name = driver.cuGetErrorName(status)
        said = name.decode() if int(answered) == 0 and name else f"error {int(status)}"
        raise Refused(f"{call} answers {said}")
    return values[0] if values else None


def _known(driver: Any, call: str, *arguments: Any) -> Any:
    """The same for what devices can do without: None where the driver does not tell."""
    try:
        return _ask(driver, call, *arguments)
    except Exception:
        return None


def _devices(driver: Any, through: str, notes: list[str]) -> list[Device]:
    _ask(driver, "cuInit", 0)
    count = _ask(driver, "cuDeviceGetCount")
    if count == 0:
        notes.append(f"{through}: cuDeviceGetCount answers 0")
    version = _known(driver, "cuDriverGetVersion")
    runs = f"CUDA {version // 1000}.{version % 1000 // 10}" if version else None
    attribute = driver.CUdevice_attribute
    found = []
    for index in range(count):
        try:
            device = _ask(driver, "cuDeviceGet", index)
            name = _ask(driver, "cuDeviceGetName", 256, device).split(b"\0")[0].decode()
            major, minor = (
                _ask(driver, "cuDeviceGetAttribute", attribute(number), device) for number in (_MAJOR, _MINOR)
            )
        except Refused as refusal:  # one that fell off the bus does not hide the others
            notes.append(f"{through}: of device {index}, {refusal}")
            continue
        memory = _known(driver, "cuDeviceTotalMem", device)
        processors = _known(driver, "cuDeviceGetAttribute", attribute(_MULTIPROCESSORS), device)
        found.append(Device("nvvm", f"sm_{major}{minor}", name, index, memory, processors, runs))
    return found
