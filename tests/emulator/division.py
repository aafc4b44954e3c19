"""v_div_scale and v_div_fmas, which scale a division's operands and its quotient.

Here the manuals' descriptions are incomplete: they leave out when S0 stays as it is, and give one factor for
v_div_fmas where the hardware has two and rounds once. This follows AMD's own model of the instructions (rocjitsu).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import manual_math
from emulator.operands import Array, Reader, raw
from emulator.wave import VCC

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]


def step(program: Program, inst: Any, name: str, sources: list[Reader | None]) -> Run:
    """Either instruction as a function of a wave."""
    dtype = np.dtype(np.float64 if name.endswith("F64") else np.float32)
    readers = [read for read in sources if read]
    destination, mask = raw(inst, "vdst"), raw(inst, "sdst")
    is_scale = "SCALE" in name

    def run(wave: Wave) -> None:
        raws = (np.broadcast_to(read(wave), wave.lanes) for read in readers)
        s0, s1, s2 = (np.ascontiguousarray(value).view(dtype) for value in raws)
        if is_scale:
            result, flag = _scaled(s0, s1, s2)
            wave.set_mask(mask, flag & wave.active)
        else:
            result = _quotient(s0, s1, s2, wave.mask_at(VCC))
        words = result.view(np.uint32).reshape(wave.lanes, -1).T
        for index, word in enumerate(words):
            wave.set_vector(destination + index, word)

    return run


def _scaled(s0: Array, s1: Array, s2: Array) -> tuple[Array, Array]:
    """S0, which is the denominator S1 or the numerator S2, scaled; and whether v_div_fmas has to scale back."""
    wide = s0.dtype == np.float64
    far, amount, fraction, bias = (768, 128, 52, 1023) if wide else (96, 64, 23, 127)
    below, above = manual_math.exponent(s1), manual_math.exponent(s2)
    is_denominator = s0 == s1
    large, small = above - below >= far, above - below <= -far
    by = np.where(above <= fraction + 1, amount, 0)
    by = np.where(small, np.where(is_denominator, 0, amount), by)
    by = np.where(below >= 2 * bias - 1, np.where(small & ~is_denominator, 0, -amount), by)
    by = np.where(below == 0, amount, by)
    by = np.where(large, np.where(is_denominator, amount, 0), by)
    result = np.where((s1 == 0) | (s2 == 0), s0.dtype.type(np.nan), manual_math.ldexp(s0, by))
    return result.astype(s0.dtype), large | small


def _quotient(s0: Array, s1: Array, s2: Array, scaled: Array) -> Array:
    """S0 * S1 + S2, scaled where the mask says so, in one rounding."""
    result = manual_math.fma(s0, s1, s2)
    if not scaled.any():
        return result
    if s0.dtype == np.float32:
        by = np.where(manual_math.exponent(s2) > 127, 64, -64)
        exact = np.ldexp(manual_math.fma_to_odd(s0, s1, s2), by).astype(np.float32)
        return np.where(scaled, exact, result)
    for lane in np.flatnonzero(scaled & np.isfinite(s0) & np.isfinite(s1) & np.isfinite(s2)):
        exact = Fraction(float(s0[lane])) * Fraction(float(s1[lane])) + Fraction(float(s2[lane]))
        exact *= Fraction(2) ** (128 if manual_math.exponent(s2[lane : lane + 1])[0] > 1023 else -128)
        try:
            result[lane] = float(exact) if exact else result[lane]
        except OverflowError:
            result[lane] = np.inf if exact > 0 else -np.inf
    return result


def overflowed(read: Reader, dtype: np.dtype[Any]) -> Reader:
    """The quotient's bits, those of infinity where they are of NaN."""
    infinity = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0 << 48}[dtype.itemsize]

    def run(wave: Wave) -> Array:
        value = read(wave)
        magnitude = value & value.dtype.type((1 << (8 * dtype.itemsize - 1)) - 1)
        return np.where(magnitude > infinity, value.dtype.type(infinity), value)

    return run
