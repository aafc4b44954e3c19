"""Device memory as arrays, and what is known of the devices."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from offload.errors import SignatureError
from offload.runtime import abi, interchange
from offload.runtime.memory import Allocation, array_over
from offload.runtime.native import DeviceMemory, Native

if TYPE_CHECKING:
    import numpy

    from offload.runtime.streams import Stream


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


class DeviceArray:
    """An array in the memory of a device.

    ``shape`` counts elements, ``dtype`` is a NumPy dtype, ``pointer`` is the address of the first element,
    ``strides`` count elements and are None for row-major arrays. The memory goes back when the last array on
    it is dropped. Other packages take it through `__dlpack__` (host backend) or `__cuda_array_interface__`
    (GPUs)."""

    __slots__ = ("__weakref__", "_memory", "_owner", "_used_on", "dtype", "pointer", "shape", "strides")

    def __init__(
        self,
        memory: DeviceMemory,
        pointer: int,
        dtype: numpy.dtype[Any],
        shape: tuple[int, ...],
        *,
        strides: tuple[int, ...] | None = None,
        owner: object,
    ) -> None:
        self._memory = memory
        self._owner = owner
        self._used_on: Stream | None = None
        self.pointer = pointer
        self.dtype = dtype
        self.shape = shape
        self.strides = strides

    @property
    def backend(self) -> str:
        """The backend whose memory it is: "cuda", "hip" or "host"."""
        return self._memory.backend

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of the elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a DeviceArray of rank 0")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}[{', '.join(map(str, self.shape))}] on {self.backend}>"

    def used_on(self, stream: Stream) -> None:
        """Remembers that work on ``stream`` uses this array; copies wait for it."""
        self._used_on = stream

    def _settle(self) -> None:
        if self._used_on is not None:
            self._used_on.synchronize()
            self._used_on = None

    def numpy(self) -> Any:
        """A copy as a NumPy array of the same shape and dtype. Raises `DeviceError`."""
        import numpy

        self._settle()
        if self.strides is not None:
            return self._strided_copy()
        result = numpy.empty(self.shape, self.dtype)
        self._memory.copy(result.ctypes.data, self.pointer, self.nbytes)
        return result

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a DeviceArray does not become a NumPy array by itself, which would copy it: call .numpy()")

    def _strided_copy(self) -> Any:
        import numpy

        if self.size == 0:
            return numpy.empty(self.shape, self.dtype)
        strides = self.strides or ()
        reach = [(size - 1) * stride for size, stride in zip(self.shape, strides, strict=True)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        flat = numpy.empty(high - low + 1, self.dtype)
        itemsize = self.dtype.itemsize
        self._memory.copy(flat.ctypes.data, self.pointer + low * itemsize, flat.nbytes)
        return numpy.ascontiguousarray(
            numpy.ndarray(self.shape, self.dtype, flat, -low * itemsize, tuple(stride * itemsize for stride in strides))
        )

    def copy_from(self, source: Any) -> None:
        """Copies a NumPy array, or anything that NumPy takes, of the same shape and dtype into this array.

        Raises `SignatureError` for another shape or dtype, `DeviceError` where the copy fails.
        """
        import numpy

        values = source.numpy() if isinstance(source, DeviceArray) else numpy.asarray(source)
        if values.shape != self.shape or values.dtype != self.dtype:
            raise SignatureError(
                f"DeviceArray.copy_from(): expected {self.dtype.name}{list(self.shape)}, given "
                f"{values.dtype.name}{list(values.shape)}; convert it, for instance with "
                f"numpy.asarray(x, '{self.dtype.name}')"
            )
        if self.strides is not None:
            raise SignatureError("DeviceArray.copy_from(): the array is a strided view; copy into a contiguous one")
        self._settle()
        values = numpy.ascontiguousarray(values)
        self._memory.copy(self.pointer, values.ctypes.data, self.nbytes)

    def clear(self) -> None:
        """Sets every byte of a contiguous array to zero. Raises `DeviceError`."""
        self._settle()
        self._memory.clear(self.pointer, self.nbytes)

    def _host_view(self) -> Any:
        strides = None if self.strides is None else tuple(s * self.dtype.itemsize for s in self.strides)
        return array_over(self.pointer, self.dtype, self.shape, strides, owner=self)

    def __dlpack__(self, **options: Any) -> Any:
        """DLPack of the memory itself; on a GPU there is `__cuda_array_interface__` instead (BufferError)."""
        if self.backend != "host":
            raise BufferError(f"an array on {self.backend} is exported through __cuda_array_interface__, not DLPack")
        self._settle()
        return self._host_view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return interchange.DLPACK_DEVICES[self.backend], self._memory.device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.backend == "host":
            raise AttributeError("__cuda_array_interface__: the array is in the memory of the CPU, use DLPack")
        self._settle()
        strides = None if self.strides is None else tuple(s * self.dtype.itemsize for s in self.strides)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": strides,
            "stream": None,
        }


class Device:
    """``lib.device``: memory and facts of the calling thread's device of the backend in use."""

    def __init__(self, native: Native) -> None:
        self._native = native

    @property
    def info(self) -> DeviceInfo:
        """The device in use. Raises `DeviceError` where there is none."""
        return device_info(self._native, self._native.backend(), self._native.api.mgpuGetDefaultDevice())

    def empty(self, shape: int | Iterable[int], dtype: Any) -> DeviceArray:
        """A new row-major array with undefined contents; ``dtype`` is anything that numpy.dtype takes.

        Raises `DeviceError` where memory runs out, ValueError for a negative size.
        """
        import numpy

        sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if any(size < 0 for size in sizes):
            raise ValueError(f"a shape has no negative sizes: {sizes}")
        element = numpy.dtype(dtype)
        if element.hasobject or not element.isnative:
            raise SignatureError(f"an array of {element} cannot be in device memory; use a native numeric dtype")
        memory = self._native.memory()
        pointer = memory.allocate(math.prod(sizes) * element.itemsize)
        return DeviceArray(memory, pointer, element, sizes, owner=Allocation(pointer, memory.free))

    def zeros(self, shape: int | Iterable[int], dtype: Any) -> DeviceArray:
        """Like `empty`, with every byte zero."""
        array = self.empty(shape, dtype)
        array.clear()
        return array

    def array(self, source: Any, dtype: Any = None) -> DeviceArray:
        """A copy of a NumPy array, of anything that NumPy takes, or of another DeviceArray."""
        import numpy

        values = source.numpy() if isinstance(source, DeviceArray) else source
        values = numpy.asarray(values, dtype)
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        array = self.empty(values.shape, values.dtype)
        array.copy_from(values)
        return array

    def synchronize(self) -> None:
        """Waits for the calling thread's stream. Raises `DeviceError` for what went wrong on it."""
        self._native.api.mgpuStreamSynchronize(None)
        self._native.check()

    def __repr__(self) -> str:
        return f"<offload device of {self._native.backend()}>"
