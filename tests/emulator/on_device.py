"""A library whose kernels take arrays of the host: they are copied to the device before a launch, and back after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from offload.runtime import DeviceArray, Library


class OnDevice:
    """``library`` as on the host backend, where kernels take NumPy's arrays; what it has otherwise is the library's."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    @property
    def kernels(self) -> _Kernels:
        return _Kernels(self._library)


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

        def call(*arguments: Any) -> None:
            arrays = [(value, self._copied(value)) for value in arguments]
            bound(*(there for _, there in arrays))
            for here, there in arrays:
                if isinstance(here, np.ndarray) and here.flags.writeable and here.size:
                    here[...] = there.numpy()

        return call

    def _copied(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if value.flags.c_contiguous:
            return self._library.device.array(value)
        low, high = np.lib.array_utils.byte_bounds(value)
        whole = np.lib.stride_tricks.as_strided(_at(value, low), (high - low,), (1,))
        there = self._library.device.array(np.ascontiguousarray(whole))
        start = there.pointer + value.__array_interface__["data"][0] - low
        strides = tuple(stride // value.itemsize for stride in value.strides)
        return DeviceArray(there._memory, start, value.dtype, value.shape, strides=strides, owner=there)


def _at(value: np.ndarray[Any, Any], address: int) -> np.ndarray[Any, Any]:
    """The byte at an address within the memory of an array."""
    import ctypes

    return np.frombuffer((ctypes.c_uint8 * 1).from_address(address), np.uint8)
