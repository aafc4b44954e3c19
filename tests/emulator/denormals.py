"""Denormal numbers of 32 bits: the wave's mode says whether instructions flush them; some do so in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.operands import Array, Reader

if TYPE_CHECKING:
    from emulator.wave import Wave

KEPT_F32, _KEPT_OTHERS = 0x30, 0xC0
"""Bits of MODE: denormal operands and results of 32 bits are kept, and those of 16 and 64."""

_BITS_ALONE = ("V_CMP_CLASS", "V_CMPX_CLASS", "V_DOT", "V_MFMA", "V_SMFMAC", "V_WMMA", "V_SWMMAC", "V_DIV_SCALE")
ALWAYS = {"V_EXP_F32", "V_LOG_F32", "V_RCP_F32", "V_RCP_IFLAG_F32", "V_RSQ_F32", "V_S_EXP_F32", "V_S_LOG_F32",
          "V_S_RCP_F32", "V_S_RSQ_F32"}  # fmt: skip
"""They take denormal numbers for zero, and give none, in every mode."""
_OF_TURNS = ("V_SIN_F32", "V_COS_F32")


def check_mode(mode: int) -> None:
    """MODE's low 8 bits: roundings, then denormal numbers of f32 and of f16 and f64."""
    if mode & 0xF:
        raise EmulationError("a rounding mode other than to nearest")
    if mode & KEPT_F32 not in (0, KEPT_F32):
        raise EmulationError("a mode in which denormal numbers are operands alone, or results alone")
    if mode & _KEPT_OTHERS != _KEPT_OTHERS:
        raise EmulationError("a mode without denormal numbers of 16 and 64 bits")


def is_f32(form: str) -> bool:
    """The format of an operand whose numbers are flushed."""
    return form in ("F32", "PK2_F32")


def obeys_mode(name: str) -> bool:
    """Whether an instruction computes with its operands of f32."""
    return not name.startswith(_BITS_ALONE)


def flushed(bits: Array) -> Array:
    """float32 as words, or two of them in each of 64 bits: denormal numbers become zeros of their sign."""
    words = np.ascontiguousarray(bits).view(np.uint32)
    return np.where(words & np.uint32(0x7F800000), words, words & np.uint32(0x80000000)).view(bits.dtype)


def flushing(read: Reader) -> Reader:
    """The operand in a mode without denormal numbers."""
    return lambda wave: flushed(read(wave))


def flushing_halves(read: Reader) -> Reader:
    """The operand, two numbers of 16 bits in each word, without denormal ones."""

    def run(wave: Wave) -> Any:
        halves = np.ascontiguousarray(read(wave)).view(np.uint16)
        return np.where(halves & np.uint16(0x7C00), halves, halves & np.uint16(0x8000)).view(np.uint32)

    return run


def by_mode(keeping: Callable[[Wave], Any], without: Callable[[Wave], Any]) -> Callable[[Wave], Any]:
    """The one or the other, as the wave's mode is when it comes to them."""
    return lambda wave: (keeping if wave.mode & KEPT_F32 else without)(wave)


def limited_turns(name: str, read: Reader | None) -> Reader | None:
    """Sines and cosines of more than 256 turns are those of 0."""
    if name not in _OF_TURNS or read is None:
        return read

    def run(wave: Wave) -> Any:
        value = read(wave)
        return np.where(np.abs(value.view(np.float32)) > 256, np.uint32(0), value)

    return run
