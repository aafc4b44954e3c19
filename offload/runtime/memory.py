"""Owners of memory that a library allocated, and NumPy arrays over it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.runtime.pending import Mark

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


def row_major(shape: tuple[int, ...]) -> list[int]:
    """The strides, in elements, of a row-major array."""
    strides, step = [1] * len(shape), 1
    for index in range(len(shape) - 1, -1, -1):
        strides[index] = step
        step *= shape[index]
    return strides


@functools.cache
def c_free() -> Callable[[int], None]:
    """libc's free, which takes what MLIR's host allocations return."""
    free = ctypes.CDLL(None).free
    free.argtypes = (ctypes.c_void_p,)
    free.restype = None
    return free


class Uses:
    """What uses memory of a device: work up to ``mark``, if there is any. Arrays on the same memory share it."""

    __slots__ = ("mark",)

    def __init__(self) -> None:
        self.mark: Mark | None = None


class Allocation:
    """Owns the allocation at ``pointer`` and calls ``release(pointer)`` once, from whatever thread drops it
    last. ``uses`` is for memory of a device."""

    __slots__ = ("pointer", "release", "uses")

    def __init__(self, pointer: int, release: Callable[[int], None]) -> None:
        self.pointer = pointer
        self.release = release
        self.uses = Uses()

    def __del__(self) -> None:
        if self.pointer:
            self.release(self.pointer)


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
