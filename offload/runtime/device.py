"""Devices: what is known of them, and memory on them."""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsIndex

from offload.errors import DeviceError, SignatureError
from offload.runtime import abi, interchange
from offload.runtime.array import DeviceArray, without_mask
from offload.runtime.dtypes import DTYPES, Mismatch, numpy_dtype
from offload.runtime.entered import NOT_ENTERED
from offload.runtime.memory import Allocation, DeviceAllocation, array_over
from offload.runtime.native import Native


@dataclass(frozen=True)
class DeviceInfo:
    """A device. ``index`` counts within its backend; ``chip`` is what images are chosen by ("sm_90",
    "gfx942:sramecc+:xnack-", "x86-64-v3")."""

    backend: str
    index: int
    name: str
    chip: str
    memory_bytes: int
    warp_size: int
    multiprocessors: int


def device_info(native: Native, backend: str, index: int) -> DeviceInfo:
    """Raises `DeviceError` where there is no such device."""
    if not -(1 << 31) <= index < 1 << 31:  # ctypes would ask for what is left of it in 32 bits
        raise DeviceError(f"There is no device {index}; numbers of devices have 32 bits.", abi.ERROR_NO_DEVICE)
    raw = abi.RawDeviceInfo()
    native.api.mgpuDeviceGetInfo(backend.encode(), index, ctypes.byref(raw))
    native.check()
    return DeviceInfo(
        raw.backend.decode(),
        index,
        raw.name.decode("utf-8", "replace"),
        raw.chip.decode(),
        raw.memory_bytes,
        raw.warp_size,
        raw.multiprocessors,
    )


def all_devices(native: Native) -> list[DeviceInfo]:
    """The devices of all backends, in the order in which backends are tried."""
    return [
        device_info(native, backend, index)
        for backend in abi.BACKENDS
        for index in range(native.api.mgpuDeviceCount(backend.encode()))
    ]


class Device:
    """``lib.device``: memory and facts of the calling thread's device of the backend in use; ``lib.device(1)``: of
    another. ``with lib.device(1):`` makes it the thread's device."""

    def __init__(self, native: Native, index: int | None = None) -> None:
        self._native = native
        self._index = index
        self._entered = threading.local()

    def __call__(self, which: Any) -> Device:
        """The device of that number, within the backend in use, or the one that a device of cuda.core, cupy or torch
        stands for. Raises `DeviceError` where there is none, TypeError for what stands for no device."""
        index = interchange.device_index(which)
        device_info(self._native, self._native.backend(), index)
        return Device(self._native, index)

    @property
    def index(self) -> int:
        """Its number within the backend."""
        return self._native.device_of_thread() if self._index is None else self._index

    def _selected(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._index is None else self._native.on_device(self._index)

    def __enter__(self) -> Device:
        stack = self._entered.__dict__.setdefault("stack", [])
        selected = self._selected()
        selected.__enter__()
        stack.append(selected)
        return self

    def __exit__(self, *exception: Any) -> None:
        if not getattr(self._entered, "stack", None):
            raise RuntimeError(NOT_ENTERED)
        self._entered.stack.pop().__exit__(*(exception or (None, None, None)))

    @property
    def info(self) -> DeviceInfo:
        """What is known of it. Raises `DeviceError` where there is none."""
        return device_info(self._native, self._native.backend(), self.index)

    def empty(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any) -> DeviceArray:
        """A new row-major array with undefined contents; ``dtype`` is anything that numpy.dtype takes.

        Raises `DeviceError` where memory runs out, `SignatureError` for a dtype of texts or objects or of foreign byte
        order, ValueError for a negative size.
        """
        return self._allocate(shape, dtype, shared=False)

    def managed(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any) -> DeviceArray:
        """Like `empty`, in memory that the CPU and the device share; `DeviceArray.host_view` is the CPU's view. Raises
        as `empty` does."""
        return self._allocate(shape, dtype, shared=True)

    def _allocate(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any, *, shared: bool) -> DeviceArray:
        sizes, element = _described(shape, dtype)
        with self._selected():
            memory = self._native.memory()
        pointer = memory.allocate(math.prod(sizes) * element.itemsize, shared)
        return DeviceArray(memory, pointer, element, sizes, shared=shared, owner=DeviceAllocation(pointer, memory))

    def zeros(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any) -> DeviceArray:
        """Like `empty`, with every byte zero. Raises as `empty` does."""
        array = self.empty(shape, dtype)
        array.clear()
        return array

    def array(self, source: Any, dtype: Any = None) -> DeviceArray:
        """A row-major copy of a NumPy array, of anything that NumPy takes, or of another DeviceArray, of its shape.

        The elements are converted to ``dtype``; by default they stay as they are, in this machine's byte order.

        Raises `DeviceError` where memory runs out, `SignatureError` for a dtype of texts or objects."""
        import numpy

        values = source.numpy() if isinstance(source, DeviceArray) else without_mask(source)
        values = numpy.asarray(values, _named(dtype))
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        array = self.empty(values.shape, values.dtype)
        array.copy_from(values)
        return array

    def pinned(self, shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any) -> Any:
        """A NumPy array in pinned memory of the host, between which and the device copies are fastest.

        Raises `DeviceError` where the driver refuses, `SignatureError` and ValueError as `empty` does."""
        import numpy

        sizes, element = _described(shape, dtype)
        room = numpy.empty(sizes, element)
        if room.nbytes == 0:
            return room
        with self._selected():
            self._native.api.mgpuMemHostRegister(room.ctypes.data, room.nbytes)
            self._native.check()
        owner = Allocation(room.ctypes.data, _Unregister(self._native, room))
        return array_over(room.ctypes.data, element, sizes, None, owner=owner)

    def synchronize(self) -> None:
        """Waits for the calling thread's stream on it. Raises `DeviceError` for what went wrong on it."""
        with self._selected():
            self._native.api.mgpuStreamSynchronize(None)
        self._native.check()

    def __repr__(self) -> str:
        return f"<offload device {self.index} of {self._native.backend()}>"


class _Unregister:
    """What releases pinned memory: unregisters it, then lets it go."""

    def __init__(self, native: Native, room: object) -> None:
        self._native = native
        self._process = native.process()
        self._room = room

    def __call__(self, pointer: int) -> None:
        error = self._native.at_end(lambda: self._native.api.mgpuMemHostUnregister(pointer), self._process, each=False)
        if error is not None:
            raise error


def _named(dtype: Any) -> Any:
    """A dtype; NumPy knows the names that signatures give small floats once ml_dtypes is imported. Raises
    `SignatureError` for the name of one where that is not installed."""
    known = DTYPES.get(dtype) if isinstance(dtype, str) else None
    if known is None or known.family != "small":
        return dtype
    try:
        return numpy_dtype(known)
    except Mismatch as error:
        raise SignatureError(f"{error.given}: {error.advice}") from None


def _described(shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any) -> tuple[tuple[int, ...], Any]:
    import numpy

    try:
        sizes: tuple[int, ...] = (index(shape),)  # type: ignore[arg-type]  # NumPy's integers are no int
    except TypeError:
        try:
            sizes = tuple(map(index, shape))  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"a shape is an integer or a tuple of integers, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"a shape has no negative sizes: {sizes}")
    element = numpy.dtype(_named(dtype))
    if element.hasobject or not element.isnative or element.kind in "SU":
        raise SignatureError(f"an array of {element} cannot be in device memory; use a native numeric dtype")
    if (size := math.prod(sizes) * element.itemsize) >= 1 << 63:  # ctypes would pass what is left of it in 64 bits
        raise DeviceError(f"An allocation of {size} bytes is too large.", abi.ERROR_MEMORY)
    return sizes, element
