"""Owners of memory that a library allocated, and NumPy arrays over it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from _ctypes import CFuncPtr
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.runtime.native import DeviceMemory
    from offload.runtime.pending import Mark

_BY_REFERENCE: type = type(ctypes.byref(ctypes.c_int()))
ADDRESSES = (Integral, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes._Pointer, _BY_REFERENCE, CFuncPtr)
"""What an address may be; in ctypes, those of callbacks are the last."""

# MLIR's MemRefToLLVM gives what memref.get_global finds, constant or not, this allocated pointer: nobody may free it.
GLOBAL_MEMORY = 0xDEADBEEF


@functools.cache
def may_be_written(pointer: int) -> bool:
    """Whether memory of a library, which stays where it is, is of a variable and not of a constant: whether its page
    may be written. False where the system does not say."""
    with contextlib.suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, rights, *_ = line.split(maxsplit=2)
            low, high = (int(end, 16) for end in span.split("-"))
            if low <= pointer < high:
                return "w" in rights
    return False


_LONGEST = 2**63 - 1


def row_major(shape: tuple[int, ...]) -> list[int]:
    """The strides, in elements, of a row-major array. Those of empty arrays, which nothing looks at, fit int64, too."""
    strides, step = [1] * len(shape), 1
    for index in range(len(shape) - 1, -1, -1):
        strides[index] = step
        step = min(step * shape[index], _LONGEST)
    return strides


@functools.cache
def c_free() -> Callable[[int], None]:
    """libc's free, which takes what MLIR's host allocations return."""
    free = ctypes.CDLL(None).free
    free.argtypes = (ctypes.c_void_p,)
    free.restype = None
    return free


class Uses:
    """What uses memory of a device: work up to ``mark``, if there is any, and other packages, where it was ``lent`` to
    one. Arrays on the same memory share it.

    Threads that launch on several streams at once leave a tuple of marks, none of which is known to be behind another:
    one for each stream."""

    __slots__ = ("lent", "mark")

    def __init__(self) -> None:
        self.mark: Mark | tuple[Mark, ...] | None = None
        self.lent = False

    def marks(self) -> tuple[Mark, ...]:
        """Each of them."""
        return self.marks_of(self.mark)

    @staticmethod
    def marks_of(mark: Mark | tuple[Mark, ...] | None) -> tuple[Mark, ...]:
        """Those that ``mark`` was once."""
        return () if mark is None else mark if isinstance(mark, tuple) else (mark,)


class Allocation:
    """Owns the allocation at ``pointer`` and calls ``release(pointer)`` once, from whatever thread drops it last."""

    __slots__ = ("pointer", "release")

    def __init__(self, pointer: int, release: Callable[[int], None]) -> None:
        self.pointer = pointer
        self.release = release

    def __del__(self) -> None:
        if self.pointer:
            self.release(self.pointer)


class DeviceAllocation:
    """Owns memory of a device, and gives it back once, behind what ``uses`` it.

    It does both itself: of a circle of garbage, an array may be finalized after it."""

    __slots__ = ("_memory", "_pointer", "uses")

    def __init__(self, pointer: int, memory: DeviceMemory) -> None:
        self._pointer = pointer
        self._memory = memory
        self.uses = Uses()

    def __del__(self) -> None:
        if not self._pointer:
            return
        uses, memory = self.uses, self._memory
        error = None
        for mark in uses.marks():
            error = memory.free_after(mark) or error
        if uses.lent:
            error = memory.free_after_others() or error
        memory.free(self._pointer)
        if error is not None:
            raise error


class _Window:
    """What NumPy makes an array over: the description of raw memory, and what keeps that alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def array_over(
    pointer: int,
    dtype: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    *,
    owner: object,
    readonly: bool = False,
) -> Any:
    """A NumPy array of ``dtype`` over the memory at ``pointer``; ``strides`` count bytes, None is row-major.
    It keeps ``owner`` alive."""
    import numpy

    if not pointer:  # NumPy refuses NULL, and only empty arrays come without memory.
        return numpy.empty(shape, dtype)
    # Raw bytes first, because the interface has no names for the types of ml_dtypes.
    raw = f"|V{dtype.itemsize}"
    interface = {
        "version": 3,
        "data": (pointer, readonly),
        "typestr": raw,
        "shape": shape,
        "strides": strides,
    }
    return numpy.asarray(_Window(interface, owner)).view(dtype)
