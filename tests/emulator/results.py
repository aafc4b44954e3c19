"""What becomes of an instruction's result: clamp, output modifiers, and which part of the register is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.denormals import flushed
from emulator.errors import EmulationError
from emulator.manual_compile import Meaning
from emulator.operands import Array, raw

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave


def place(program: Program, inst: Any, means: Meaning) -> tuple[int, bool]:
    """The register that is written, and whether 16 bits go into its upper half."""
    kind, register = type(inst).__name__, raw(inst, "vdst")
    if means.narrow and program.family != "cdna" and not kind.startswith("VOP3") and register >= 128:
        return register - 128, True
    return register, kind.startswith("VOP3") and not kind.startswith("VOP3P") and bool(raw(inst, "opsel") & 8)


def finisher(
    program: Program, inst: Any, means: Meaning, form: str, bits: int, flush: bool
) -> Callable[[Wave, Array], Array]:
    """Clamp, output modifiers and which part of the register is written; denormal numbers of f32 flushed before."""
    kind = type(inst).__name__
    clamp, omod = raw(inst, "clmp"), raw(inst, "omod")
    destination, high = place(program, inst, means)
    narrow = means.narrow and bits <= 32
    packed = kind.startswith("VOP3P")
    floats = {16: np.float16, 32: np.float32, 64: np.float64}
    is_float = form.lstrip("PK2_").startswith("F") or form.startswith("F")
    if clamp and not is_float:
        raise EmulationError("clamp of integers")
    sdwa = "SDWA" in kind and not kind.startswith("VOPC")
    select, unused = raw(inst, "dst_sel", 6), raw(inst, "dst_unused")

    def scaled(value: Array) -> Array:
        if packed and form.startswith("PK2_F16"):
            held, dtype = np.ascontiguousarray(value).view(np.float16), np.float16
        else:
            size = 16 if narrow else bits
            dtype = floats[size]
            held = value.astype(np.uint16).view(np.float16) if size == 16 else value.view(dtype)
        if omod:
            held = held * dtype((0, 2, 4, 0.5)[omod])
            if flush:
                held = flushed(held.view(np.uint32)).view(dtype)
        if clamp:
            held = np.where(np.isnan(held), dtype(0), np.clip(held, dtype(0), dtype(1)))
        result = held.astype(dtype)
        return result.view(np.uint16).astype(np.uint32) if narrow and not packed else result.view(value.dtype)

    def run(wave: Wave, value: Array) -> Array:
        if flush:
            value = flushed(value)
        if clamp or omod:
            value = scaled(value)
        if sdwa and select != 6:
            return _sdwa_result(wave.v[destination], value, select, unused)
        if not narrow:
            return value
        low = np.uint32(0xFFFF)
        if high:
            return wave.v[destination] & low | (value & low) << np.uint32(16)
        if program.family == "cdna":
            return value & low
        return wave.v[destination] & ~low | value & low

    if not (clamp or omod or flush or narrow or (sdwa and select != 6)):
        return lambda wave, value: value
    return run


def _sdwa_result(old: Array, value: Array, select: int, unused: int) -> Array:
    width, shift = (8, 8 * select) if select < 4 else (16, 16 * (select - 4))
    ones = np.uint32((1 << width) - 1)
    placed = (value & ones) << np.uint32(shift)
    if unused == 2:  # preserve
        return old & ~(ones << np.uint32(shift)) | placed
    if unused == 1 and shift + width < 32:  # sign-extend
        up = np.uint32(32 - width - shift)
        return ((placed << up).view(np.int32) >> up.view(np.int32)).view(np.uint32)
    return placed
