"""A library whose kernels take arrays of the host: they are copied to the device before a launch, and back after it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from device.checks import Program

import offload
from offload.runtime import DeviceArray, Function, Library


class OnDevice:
    """``library`` as on the host backend, where kernels take NumPy's arrays; what it has otherwise is the library's."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name)
        if isinstance(found, Function) and any(argument.space == "device" for argument in found.signature.args):
            places = [argument.space == "device" for argument in found.signature.args]
            return lambda *arguments: _called(self._library, found, places, arguments)
        return found

    @property
    def kernels(self) -> _Kernels:
        return _Kernels(self._library)


def emulated(chip: str) -> tuple[str, str]:
    """The target of what emulated devices of a chip run, with options as in "sm_90,O=0", and the runtime's backend."""
    return (f"nvvm:{chip},format=isa", "cuda") if chip.startswith("sm_") else (f"rocdl:{chip}", "hip")


def compiled(source: object, chip: str, **options: Any) -> Library:
    """A program for one chip, with options; inside of the driver's ``chip`` it runs there."""
    target, backend = emulated(chip)
    library = offload.compile(source, targets=[target], **options)
    library.use(backend)
    return library


def compiled_program(program: Program) -> Library:
    """A program of the device suite, for its NVIDIA chip, as PTX."""
    (target,) = [target for target in program.targets if target.startswith("nvvm:")]
    chip = target.removeprefix("nvvm:").removesuffix(",format=isa")
    return compiled(program.text, chip, **program.options)


class _Kernels:
    def __init__(self, library: Library) -> None:
        self._library = library

    def __getattr__(self, name: str) -> _Kernel:
        return _Kernel(self._library, getattr(self._library.kernels, name))

    def __getitem__(self, name: str) -> _Kernel:
        return _Kernel(self._library, self._library.kernels[name])

    def __iter__(self) -> Any:
        return iter(self._library.kernels)


class _Kernel:
    def __init__(self, library: Library, kernel: Any) -> None:
        self._library, self._kernel = library, kernel

    def __getitem__(self, launch: Any) -> Any:
        bound = self._kernel[launch]

        return lambda *arguments: _called(self._library, bound, [True] * len(arguments), arguments)


def _called(library: Library, function: Any, on_device: list[bool], arguments: tuple[Any, ...]) -> Any:
    """Calls with copies of the arrays that have to be on the device, and copies them back."""
    pairs = [
        (value, _copied(library, value) if there and isinstance(value, np.ndarray) else value)
        for value, there in zip(arguments, on_device, strict=True)
    ]
    result = function(*(there for _, there in pairs))
    for here, there in pairs:
        if here is not there and here.flags.writeable and here.size:
            here[...] = there.numpy()
    return result


def _copied(library: Library, value: np.ndarray[Any, Any]) -> Any:
    """The array in device memory, with the same strides."""
    if value.flags.c_contiguous:
        return library.device.array(value)
    low, high = np.lib.array_utils.byte_bounds(value)
    whole = np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8)
    there = library.device.array(whole.copy())
    start = there.pointer + value.__array_interface__["data"][0] - low
    strides = tuple(stride // value.itemsize for stride in value.strides)
    return DeviceArray(there._memory, start, value.dtype, value.shape, strides=strides, owner=there)
