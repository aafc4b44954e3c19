"""Arrays in the memory of a device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

from offload.errors import DeviceError, SignatureError
from offload.runtime import export, interchange, turns
from offload.runtime.memory import DeviceAllocation, Uses, array_over, row_major
from offload.runtime.native import DeviceMemory
from offload.runtime.pending import Mark
from offload.runtime.pickled import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

    from offload.runtime.native import Native


WITHOUT_MASK = "pass its .data, or .filled(...) of it"


def is_masked(value: Any) -> bool:
    """Whether it is a masked array of NumPy, which is more than its elements."""
    import numpy

    return type(value) is not numpy.ndarray and isinstance(value, numpy.ma.MaskedArray)


def without_mask(source: Any) -> Any:
    """What a copy may be made of. Raises `SignatureError` for a masked array, whose mask the copy would not have."""
    if is_masked(source):
        raise SignatureError(f"a masked array: a copy on a device has no mask; {WITHOUT_MASK}")
    return source


def _uses_of(owner: object) -> Uses:
    """Those of the memory that it owns: an array, of which another is a view, or an allocation, of which there may be
    several arrays."""
    if isinstance(owner, DeviceArray):
        return owner._uses
    return owner.uses if isinstance(owner, DeviceAllocation) else Uses()


def _joined(before: tuple[Mark, ...], mark: Mark, held: Sequence[Mark]) -> Mark | tuple[Mark, ...]:
    """What stands for these and the mark, which comes after those that are ``held``."""
    others = []
    for other in before:
        if other.token is mark.token:
            mark = other if other.serial > mark.serial else mark
        elif not other.done and other not in held:
            others.append(other)
    return (*others, mark) if others else mark


class DeviceArray:
    """An array in the memory of a device.

    ``shape`` counts elements, ``dtype`` is a NumPy dtype, ``pointer`` is the address of the first element,
    ``strides`` count elements and are None for row-major arrays; ``shared`` says whether the CPU can use the memory
    too. The memory goes back when the last array on it is dropped. Other packages take it through `__dlpack__` or, on
    GPUs, `__cuda_array_interface__`."""

    __slots__ = (
        *("__weakref__", "_memory", "_owner", "_uses"),
        *("dtype", "pointer", "shape", "shared", "strides"),
    )

    def __init__(
        self,
        memory: DeviceMemory,
        pointer: int,
        dtype: numpy.dtype[Any],
        shape: tuple[int, ...],
        *,
        strides: tuple[int, ...] | None = None,
        shared: bool = False,
        owner: object,
    ) -> None:
        self._memory = memory
        self._owner = owner
        self._uses = _uses_of(owner)
        self.pointer = pointer
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.shared = shared

    @property
    def backend(self) -> str:
        """The backend whose memory it is: "cuda", "hip" or "host"."""
        return self._memory.backend

    @property
    def device(self) -> int:
        """The index of the device whose memory it is, within its backend."""
        return self._memory.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
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

    def __bool__(self) -> bool:
        raise TypeError("a DeviceArray is not true or false by itself: ask .size, or what .numpy() gives")

    def __repr__(self) -> str:
        # The CPU is one device.
        place = self.backend if self.backend == "host" else f"{self.backend}:{self.device}"
        return f"<DeviceArray {self.dtype.name}[{', '.join(map(str, self.shape))}] on {place}>"

    def is_ours(self) -> bool:
        """Whether its memory is given back behind what uses it, and not by another package."""
        owner = self._owner
        while type(owner) is DeviceArray:
            owner = owner._owner
        return type(owner) is DeviceAllocation

    def used_until(self, mark: Mark, held: Sequence[Mark] = ()) -> None:
        """Remembers that the work before ``mark`` uses this array, and that it started after the marks that are
        ``held``. Other threads may be at the same."""
        uses = self._uses
        while True:
            before = uses.mark
            if turns.replace(uses, "mark", before, _joined(uses.marks_of(before), mark, held)):
                return

    def hold(self, stream: int | None, native: Native, token: object, held: list[Mark]) -> None:
        """Lets work that is put on a stream of ``native`` from now on start after the work that uses this array, where
        that is not on the stream of the token, or before one of those that are ``held`` already. Raises
        `DeviceError`."""
        for mark in self._uses.marks():
            if mark.token is not token and not mark.done and mark not in held:
                mark.hold(stream, native)
                held.append(mark)

    def settle(self) -> None:
        """Waits for the work that uses this array. Raises `DeviceError`."""
        uses = self._uses
        before = uses.mark
        if before is None:
            return
        self._memory.check()  # or the wait would fail for what has nothing to do with it
        marks = uses.marks_of(before)
        for number, mark in enumerate(marks, 1):
            try:
                mark.wait()
            except DeviceError:
                left = marks[number if mark.event is not None else number - 1 :]  # what is not put is never known
                turns.replace(uses, "mark", before, left or None)
                raise
        turns.replace(uses, "mark", before, None)  # not earlier: another thread would find nothing to wait for

    def __reduce__(self) -> NoReturn:
        raise refusal("a DeviceArray", "pickle its .numpy(); lib.device.array(x) makes another one, or a copy")

    def numpy(self) -> Any:
        """A copy as a NumPy array of the same shape and dtype. Raises `DeviceError`."""
        import numpy

        self.settle()
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
        """Copies a NumPy array, or anything that NumPy takes, of the same shape and dtype into this array; of foreign
        byte order it may be.

        Raises `SignatureError` for another shape or dtype, `DeviceError` where the copy fails.
        """
        import numpy

        values = source.numpy() if isinstance(source, DeviceArray) else numpy.asarray(without_mask(source))
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if values.shape != self.shape or values.dtype != self.dtype:
            advice = (
                f"convert it, for instance with numpy.asarray(x, '{self.dtype.name}')"
                if values.shape == self.shape
                else "pass one of that shape, for instance with numpy.broadcast_to or reshape"
            )
            raise SignatureError(
                f"DeviceArray.copy_from(): expected {self.dtype.name}{list(self.shape)}, given "
                f"{values.dtype.name}{list(values.shape)}; {advice}"
            )
        if self.strides is not None:
            raise SignatureError("DeviceArray.copy_from(): the array is a strided view; copy into a contiguous one")
        self.settle()
        values = numpy.ascontiguousarray(values)
        self._memory.copy(self.pointer, values.ctypes.data, self.nbytes)

    def clear(self) -> None:
        """Sets every byte of a contiguous array to zero. Raises `SignatureError` for a strided one, between whose
        elements others lie, `DeviceError` where the driver refuses."""
        if self.strides is not None:
            raise SignatureError("DeviceArray.clear(): the array is a strided view; clear a contiguous one")
        self.settle()
        self._memory.clear(self.pointer, self.nbytes)

    def host_view(self) -> Any:
        """A NumPy array over the same memory, where the CPU can use it: on the host backend and for `Device.managed`.
        Raises `SignatureError` for other memory, `DeviceError` for work on it that failed."""
        if self.backend != "host" and not self.shared:
            raise SignatureError(f"{self!r} is out of the CPU's reach; .numpy() copies it")
        self.settle()
        strides = None if self.strides is None else tuple(s * self.dtype.itemsize for s in self.strides)
        return array_over(self.pointer, self.dtype, self.shape, strides, owner=self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """DLPack of the memory itself. Work that uses the array is done before what the consumer puts on ``stream``
        (-1: as it is). Raises BufferError for a copy or another device, ValueError for a stream that is none."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a DeviceArray is exported where it is: copy it with lib.device.array(x) or x.numpy()")
        if self.backend != "host":
            self._uses.lent = True
        if stream != -1:
            consumer = interchange.consumer_stream(self.backend, stream)
            if consumer is None:
                self.settle()
            else:
                for mark in self._uses.marks():
                    mark.hold_foreign(consumer, self.backend, self.device)
        strides = row_major(self.shape) if self.strides is None else self.strides
        place, versioned = self.__dlpack_device__(), max_version is not None and max_version[0] >= 1
        return export.capsule(
            self.pointer, self.dtype.name, self.dtype.itemsize, self.shape, tuple(strides), place, self, versioned
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return interchange.DLPACK_DEVICES[self.backend], self.device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.backend == "host":
            raise AttributeError("__cuda_array_interface__: the array is in the memory of the CPU, use DLPack")
        self._uses.lent = True
        self.settle()
        strides = None if self.strides is None else tuple(s * self.dtype.itemsize for s in self.strides)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": strides,
            "stream": None,
        }
