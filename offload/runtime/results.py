"""Results of functions: from what the C interface returned to Python values and arrays that own their memory.

One scalar comes back by value. A memref, a complex number or several results are written through a pointer
that is the first C argument, as a C struct of the results in order (MLIR's
LLVMTypeConverter::convertFunctionTypeCWrapper)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from offload.artifact.meta import Argument
from offload.runtime.array import DeviceArray
from offload.runtime.dtypes import DType, find, from_bits, numpy_dtype
from offload.runtime.memory import (
    GLOBAL_MEMORY,
    Allocation,
    DeviceAllocation,
    array_over,
    c_free,
    may_be_written,
)
from offload.runtime.native import Native
from offload.runtime.views import view_of


class _Half(ctypes.c_float):
    """A 16-bit float travels in the low half of a float register; a subclass makes ctypes leave the bits
    alone."""


_BY_VALUE = {
    "b": ctypes.c_int8,
    "h": ctypes.c_int16,
    "i": ctypes.c_int32,
    "q": ctypes.c_int64,
    "B": ctypes.c_uint8,
    "H": ctypes.c_uint16,
    "I": ctypes.c_uint32,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}


def is_half(dtype: DType) -> bool:
    """Whether scalars of that type travel as a 16-bit float does."""
    return dtype.size == 2 and dtype.family in ("float", "small")


def half_argument(dtype: DType) -> Callable[[Any], ctypes.c_float]:
    """A converter from a checked 16-bit float, or its bits, to what ctypes passes in a float register."""
    pack = struct.Struct(f"<{dtype.code}2x").pack
    return lambda value: _Half.from_buffer_copy(pack(value))


def by_value_type(dtype: DType) -> Any:
    """The ctypes type that carries a scalar of that type, which is not complex."""
    return _Half if is_half(dtype) else _BY_VALUE[dtype.code]


class Input(NamedTuple):
    """The memory of an array that was passed: its first address and the first behind it, where it says that it was
    allocated, which may be elsewhere, and what it lives as long as."""

    low: int
    high: int
    base: int
    owner: object

    def has(self, address: int) -> bool:
        """Whether what is there belongs to it."""
        return self.low <= address < self.high or address == self.base != 0


class ScalarResult:
    """One scalar, returned in a register."""

    def __init__(self, result: Argument) -> None:
        """Raises `Mismatch` where the type is unknown or needs a package that is missing."""
        dtype = find(result.dtype)
        self.restype = by_value_type(dtype)
        self._unpack = struct.Struct(f"<{dtype.code}").unpack_from if is_half(dtype) else None
        self._convert = from_bits(dtype)

    def __call__(self, value: Any) -> Any:
        if self._unpack is not None:
            (value,) = self._unpack(bytes(value))
        return self._convert(value)


class StructResult:
    """Results in memory: a memref, a complex number, or several of anything."""

    def __init__(self, results: Sequence[Argument], native: Native) -> None:
        """Raises `Mismatch` where a type is unknown or needs a package that is missing."""
        self.native = native
        self.single = len(results) == 1
        self.parts: list[tuple[Argument, int, Any]] = []
        codes = "@"
        for result in results:
            dtype = find(result.dtype)
            memref = result.kind == "memref"
            code = f"PPq{'q' * 2 * result.rank}" if memref else dtype.code
            self.parts.append((result, len(code), numpy_dtype(dtype) if memref else from_bits(dtype)))
            codes += code
        self.layout = struct.Struct(codes)

    def buffer(self) -> ctypes.Array[ctypes.c_char]:
        """Zeroed memory for the callee to write the results into."""
        return ctypes.create_string_buffer(self.layout.size + 8)

    def __call__(self, buffer: ctypes.Array[ctypes.c_char], inputs: Sequence[Input]) -> Any:
        """The results. ``inputs`` are the arrays that were passed."""
        words = self.layout.unpack_from(buffer)
        owners: dict[int, object] = {}
        values: list[Any] = []
        position = 0
        for result, count, convert in self.parts:
            part = words[position : position + count]
            position += count
            if result.kind == "memref":
                values.append(self._memref(result, convert, part, inputs, owners))
            else:
                values.append(convert(*part))
        return values[0] if self.single else tuple(values)

    def _memref(
        self,
        result: Argument,
        dtype: Any,
        words: tuple[int, ...],
        inputs: Sequence[Input],
        owners: dict[int, object],
    ) -> Any:
        import numpy

        allocated, aligned, offset = words[:3]
        rank = result.rank
        shape = words[3 : 3 + rank]
        strides = tuple(stride * dtype.itemsize for stride in words[3 + rank :])
        pointer = aligned + offset * dtype.itemsize
        source = next((each.owner for each in inputs if each.has(pointer) or each.has(allocated)), None)
        if source is None:
            on_device = result.space == "device"
        else:
            on_device = not isinstance(source, numpy.ndarray) and self._is_device_memory(source)
        if source is not None:
            owner = source  # An argument, or a part of one: its owner frees it.
        elif allocated == GLOBAL_MEMORY:
            owner = None  # A constant or a variable of the library, which stays loaded.
        elif allocated in owners:
            owner = owners[allocated]  # Two results in one allocation.
        else:
            owner = owners[allocated] = (
                DeviceAllocation(allocated, self.native.memory()) if on_device else Allocation(allocated, c_free())
            )
        if on_device:
            elements = None if result.strides is None else words[3 + rank :]
            memory, shared = self.native.memory(), source is None and result.shared
            if isinstance(source, DeviceArray):
                memory, shared = source._memory, source.shared
            return DeviceArray(memory, pointer, dtype, shape, strides=elements, shared=shared, owner=owner)
        # By the address of the variable: a view of it may start in another page.
        readonly = allocated == GLOBAL_MEMORY and not may_be_written(aligned)
        return array_over(pointer, dtype, shape, strides, owner=owner, readonly=readonly)

    @staticmethod
    def _is_device_memory(source: object) -> bool:
        return isinstance(source, DeviceArray) or "host" not in view_of(source).places
