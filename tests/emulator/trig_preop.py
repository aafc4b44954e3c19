"""v_trig_preop_f64: 53 bits of 2/pi from where an argument of that exponent needs them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.operands import Reader, raw

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

_BITS = 1201


@functools.cache
def _two_over_pi() -> int:
    """The first bits after the point, by Machin's formula."""
    one = 1 << (_BITS + 64)

    def arctan_of_inverse(x: int) -> int:
        term = total = one // x
        divisor, sign = 3, -1
        while term:
            term //= x * x
            total += sign * (term // divisor)
            divisor, sign = divisor + 2, -sign
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return ((2 * one << _BITS) // pi) & ((1 << _BITS) - 1)


def step(program: Program, inst: Any, sources: list[Reader | None]) -> Callable[[Wave], None]:
    """The instruction as a function of a wave."""
    value, which, destination = sources[0], sources[1], raw(inst, "vdst")
    assert value and which

    def run(wave: Wave) -> None:
        exponents = (np.broadcast_to(value(wave), wave.lanes) >> np.uint64(52)) & np.uint64(0x7FF)
        parts = np.broadcast_to(which(wave), wave.lanes) & np.uint32(31)
        pairs = zip(exponents.tolist(), parts.tolist(), strict=True)
        result = np.array([_part(exponent, part) for exponent, part in pairs]).view(np.uint64)
        wave.set_vector(destination, result.astype(np.uint32))
        wave.set_vector(destination + 1, (result >> np.uint64(32)).astype(np.uint32))

    return run


def _part(exponent: int, part: int) -> float:
    shift = 53 * part + max(0, exponent - 1077)
    bits = (_two_over_pi() << shift) >> (_BITS - 53) & ((1 << 53) - 1)
    return math.ldexp(float(bits), -53 - shift + (128 if exponent >= 1968 else 0))
