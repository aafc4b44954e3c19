"""Counts and positions of bits, whose descriptions are loops over all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.operands import Array, Reader, raw

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]


def lowest(x: Array) -> Array:
    """The position of the lowest one, -1 where there is none."""
    bits = x.dtype.itemsize * 8
    below = np.bitwise_count((x & (~x + x.dtype.type(1))) - x.dtype.type(1)).astype(np.int32)
    return np.where(below == bits, np.int32(-1), below)


def highest(x: Array) -> Array:
    """The distance of the highest one from the top, -1 where there is none."""
    spread = x.copy()
    shift = 1
    while shift < x.dtype.itemsize * 8:
        spread |= spread >> x.dtype.type(shift)
        shift *= 2
    above = np.bitwise_count(~spread).astype(np.int32)
    return np.where(x == 0, np.int32(-1), above)


def sign_length(x: Array) -> Array:
    """The distance of the highest bit that differs from the sign from the top, -1 where all are the same."""
    signed = x.view(np.int32 if x.dtype.itemsize == 4 else np.int64)
    return highest(np.where(signed < 0, ~x, x))


_VECTOR = {
    "V_FFBL_B32": lowest, "V_CTZ_I32_B32": lowest, "V_FFBH_U32": highest, "V_CLZ_I32_U32": highest,
    "V_FFBH_I32": sign_length, "V_CLS_I32": sign_length,
}  # fmt: skip
_SCALAR: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("S_FF1_I32_B32", "S_FF1_I32_B64", "S_CTZ_I32_B32", "S_CTZ_I32_B64"), lowest),
    **dict.fromkeys(("S_FF0_I32_B32", "S_FF0_I32_B64"), lambda x: lowest(~x)),
    **dict.fromkeys(("S_FLBIT_I32_B32", "S_FLBIT_I32_B64", "S_CLZ_I32_U32", "S_CLZ_I32_U64"), highest),
    **dict.fromkeys(("S_FLBIT_I32", "S_FLBIT_I32_I64", "S_CLS_I32", "S_CLS_I32_I64"), sign_length),
    **dict.fromkeys(("S_BCNT1_I32_B32", "S_BCNT1_I32_B64"), np.bitwise_count),
    **dict.fromkeys(("S_BCNT0_I32_B32", "S_BCNT0_I32_B64"), lambda x: np.bitwise_count(~x)),
}


def vector_step(program: Program, inst: Any, name: str, sources: list[Reader | None]) -> Run | None:
    """A vector instruction as a function of a wave; None for one that is not here."""
    destination, first, second = raw(inst, "vdst"), sources[0], sources[1]
    assert first
    if name in _VECTOR:
        count = _VECTOR[name]
        return lambda wave: wave.set_vector(destination, count(first(wave)).astype(np.int32).view(np.uint32))
    if second is None or not name.startswith(("V_MBCNT", "V_BCNT")):
        return None
    addend = second

    def run(wave: Wave) -> None:
        bits = first(wave)
        if name != "V_BCNT_U32_B32":
            low = 0 if "LO" in name else 32
            below = np.clip(np.arange(wave.lanes) - low, 0, 32).astype(np.uint64)
            bits = bits & ((np.uint64(1) << below) - np.uint64(1)).astype(np.uint32)
        wave.set_vector(destination, np.bitwise_count(bits).astype(np.uint32) + addend(wave))

    return run


def scalar_step(name: str, destination: int, source: Reader) -> Run | None:
    """A scalar instruction."""
    if name not in _SCALAR:
        return None
    count = _SCALAR[name]

    def run(wave: Wave) -> None:
        value = count(source(wave)).astype(np.int32)
        wave.set_scalar(destination, value.view(np.uint32))
        if "BCNT" in name:
            wave.scc = int(value[0] != 0)

    return run
