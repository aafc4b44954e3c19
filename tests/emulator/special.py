"""Vector instructions whose descriptions use other lanes, or leave something to the hardware."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.gpr_index import move
from emulator.operands import Array, Reader, half, raw, reader
from emulator.special_lanes import first_lane, permlane, permlane_swap, read_lane, swap, write_lane

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]
Readers = list[Reader | None]


def _nothing(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    return (lambda wave: None) if name in ("V_NOP", "V_PIPEFLUSH") else None


def _towards_zero(x: Array) -> Array:
    """float32 as bits of float16, rounded towards zero."""
    near = x.astype(np.float16)
    away = np.abs(near.astype(np.float32)) > np.abs(x)
    bits = near.view(np.uint16)
    return np.where(away, bits - np.uint16(1), bits).astype(np.uint32)


def _pack_rtz(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    first, second, destination = sources[0], sources[1], raw(inst, "vdst")
    assert first and second

    def run(wave: Wave) -> None:
        low, high = (_towards_zero(read(wave).view(np.float32)) for read in (first, second))
        wave.set_vector(destination, low | high << np.uint32(16))

    return run


def _accumulator(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    """v_accvgpr_read, write and mov: the side that the name tells is an accumulator."""
    destination, source = raw(inst, "vdst"), sources[0]
    code = raw(inst, "src0")
    reads = "READ" in name or "MOV" in name
    if "READ" not in name:
        destination += 256
    assert source

    def run(wave: Wave) -> None:
        wave.set_vector(destination, wave.v[code - 256 + 256] if reads else source(wave))

    return run


def _division(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    from emulator import division

    return division.step(program, inst, name, sources)


def _bitop3(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    """Any function of three bits; its table of truth stands where other instructions have modifiers."""
    table = raw(inst, "omod") << 6 | raw(inst, "abs") << 3 | raw(inst, "neg")
    destination, opsel, literal = raw(inst, "vdst"), raw(inst, "opsel"), raw(inst, "literal")
    readers = [reader(program.family, raw(inst, f"src{index}"), "B32", 32, literal) for index in range(3)]
    if name == "V_BITOP3_B16":
        readers = [half(read, bool(opsel >> index & 1)) for index, read in enumerate(readers)]

    def combined(wave: Wave) -> Array:
        values = [read(wave) for read in readers]
        result = np.zeros(wave.lanes, np.uint32)
        for row in range(8):
            if table >> row & 1:
                a, b, c = (value if row >> 2 - index & 1 else ~value for index, value in enumerate(values))
                result |= a & b & c
        return result

    if name == "V_BITOP3_B16":
        return _half_result(program, inst, combined)
    return lambda wave: wave.set_vector(destination, combined(wave))


def _trig_preop(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    from emulator import trig_preop

    return trig_preop.step(program, inst, sources)


_SUM = re.compile(r"V_(ADD|SUB|SUBREV)_(?:NC_)?([UI])(16|32)")


def _saturated(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    """Sums and differences of integers with clamp: the nearest number of the type."""
    found = _SUM.fullmatch(name)
    if not found or not raw(inst, "clmp"):
        return None
    operation, kind, bits = found.groups()
    limits = np.iinfo(f"{'u' if kind == 'U' else ''}int{bits}")
    destination = raw(inst, "vdst")
    first, second = sources[0], sources[1]
    assert first and second
    word = np.dtype(f"uint{bits}")

    def total(wave: Wave) -> Array:
        x, y = (read(wave).astype(word).view(limits.dtype).astype(np.int64) for read in (first, second))
        total = x + y if operation == "ADD" else x - y if operation == "SUB" else y - x
        return np.clip(total, limits.min, limits.max).astype(limits.dtype).view(word).astype(np.uint32)

    if bits == "16":
        return _half_result(program, inst, total)
    return lambda wave: wave.set_vector(destination, total(wave))


def _to_even(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    """v_rndne: the description's sum with 0.5 is a number it does not round."""
    if raw(inst, "clmp") or raw(inst, "omod"):
        raise EmulationError("modifiers of v_rndne")
    kind, source, destination = name[-3:], sources[0], raw(inst, "vdst")
    assert source
    if kind == "F16":

        def rounded(wave: Wave) -> Array:
            halves = source(wave).astype(np.uint16).view(np.float16)
            return np.rint(halves).view(np.uint16).astype(np.uint32)

        return _half_result(program, inst, rounded)

    def run(wave: Wave) -> None:
        value = np.rint(source(wave).view(np.float32 if kind == "F32" else np.float64))
        if kind == "F32":
            wave.set_vector(destination, value.view(np.uint32))
        else:
            bits = value.view(np.uint64)
            wave.set_vector(destination, bits.astype(np.uint32))
            wave.set_vector(destination + 1, (bits >> np.uint64(32)).astype(np.uint32))

    return run


def _half_result(program: Program, inst: Any, value: Reader) -> Run:
    """Writes 16 bits of a register; the other half becomes 0 on gfx9 and stays on later chips."""
    destination, high = raw(inst, "vdst"), type(inst).__name__.startswith("VOP3") and raw(inst, "opsel") & 8
    if not type(inst).__name__.startswith("VOP3") and program.family != "cdna" and destination >= 128:
        destination, high = destination - 128, True

    def run(wave: Wave) -> None:
        kept, made = wave.v[destination], value(wave) & np.uint32(0xFFFF)
        if high:
            wave.set_vector(destination, kept & np.uint32(0xFFFF) | made << np.uint32(16))
        else:
            wave.set_vector(destination, made if program.family == "cdna" else kept & np.uint32(0xFFFF0000) | made)

    return run


def _exponent(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    """v_frexp_exp: of denormal numbers too, where the description's field of bits does not tell it."""
    source, destination = sources[0], raw(inst, "vdst")
    assert source
    dtype = np.dtype({"F16": np.float16, "F32": np.float32, "F64": np.float64}[name[-3:]])

    def run(wave: Wave) -> Array:
        bits = source(wave)
        value = (bits.astype(np.uint16) if dtype == np.float16 else bits).view(dtype).astype(np.float64)
        power = np.where(np.isfinite(value), np.frexp(value)[1], 0).astype(np.int32)
        return power.view(np.uint32)

    if dtype == np.float16:
        return _half_result(program, inst, run)
    return lambda wave: wave.set_vector(destination, run(wave))


def _pk_mov(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    """One word of each source, chosen by op_sel."""
    if name != "V_PK_MOV_B32":
        return None
    first, second, destination, opsel = sources[0], sources[1], raw(inst, "vdst"), raw(inst, "opsel")
    assert first and second

    def run(wave: Wave) -> None:
        low = first(wave) >> np.uint64(32 * (opsel & 1))
        high = second(wave) >> np.uint64(32 * (opsel >> 1 & 1))
        wave.set_vector(destination, low.astype(np.uint32))
        wave.set_vector(destination + 1, high.astype(np.uint32))

    return run


def _fixup(program: Program, inst: Any, name: str, sources: Readers) -> None:
    """As described, but that a quotient which is NaN although neither operand is has overflowed."""
    from emulator.division import overflowed

    assert sources[0]
    sources[0] = overflowed(sources[0], np.dtype({"F16": np.uint16, "F32": np.uint32, "F64": np.uint64}[name[-3:]]))


def _counted(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    from emulator import counting

    kind = type(inst).__name__  # of these, the general way knows what parts of registers are
    return None if "DPP" in kind or "SDWA" in kind else counting.vector_step(program, inst, name, sources)


def _matrix(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    from emulator import matrix

    return matrix.step(program, inst, getattr(inst, "instead", inst.op).name)


def _relative(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    """v_movreld and v_movrels: M0 is added to the number of the destination, or of the source."""
    if name not in ("V_MOVRELD_B32", "V_MOVRELS_B32"):
        raise EmulationError(f"an unknown instruction: {name}")
    code, destination, source = raw(inst, "src0"), raw(inst, "vdst"), sources[0]
    assert source

    def run(wave: Wave) -> None:
        offset = int(wave.s[wave.m0])
        if name == "V_MOVRELD_B32":
            wave.set_vector(destination + offset, source(wave))
        else:
            wave.set_vector(destination, wave.v[code - 256 + offset])

    return run


_CLAMPED = ("V_ADD", "V_SUB", "V_WMMA", "V_SWMMAC", "V_MFMA", "V_SMFMAC")
_OMOD_IS_ANOTHER = ("V_BITOP3", "V_MFMA", "V_SMFMAC", "V_WMMA", "V_SWMMAC")


def check_modifiers(inst: Any, name: str) -> None:
    """What instructions here may not have: the general way knows it, or what they are does."""
    clamps = raw(inst, "clmp") and not name.startswith(_CLAMPED)
    scales = raw(inst, "omod") and not name.startswith(_OMOD_IS_ANOTHER)
    parts = "SDWA" in type(inst).__name__ and raw(inst, "dst_sel", 6) != 6
    every = raw(inst, "row_mask") == raw(inst, "bank_mask") == 15 and raw(inst, "bc")
    masks = "DPP" in type(inst).__name__ and not every
    if clamps or scales or parts or masks:
        raise EmulationError(f"modifiers of {name.lower()}")


SPECIAL: tuple[tuple[str, Callable[[Program, Any, str, Readers], Run | None]], ...] = (
    ("V_NOP", _nothing), ("V_PIPEFLUSH", _nothing), ("V_READFIRSTLANE", first_lane), ("V_READLANE", read_lane),
    ("V_WRITELANE", write_lane), ("V_SWAP_B32", swap), ("V_PERMLANE", permlane_swap), ("V_PERMLANE", permlane),
    ("V_DIV_SCALE", _division), ("V_DIV_FMAS", _division), ("V_DIV_FIXUP", _fixup),
    *((name, _counted) for name in ("V_MBCNT", "V_BCNT", "V_FFB", "V_CTZ", "V_CLZ", "V_CLS")),
    ("V_ADD", _saturated), ("V_SUB", _saturated), ("V_RNDNE", _to_even),
    ("V_FREXP_EXP", _exponent), ("V_PK_MOV_B32", _pk_mov), ("V_TRIG_PREOP", _trig_preop), ("V_BITOP3", _bitop3),
    ("V_CVT_PKRTZ_F16_F32", _pack_rtz), ("V_CVT_PK_RTZ_F16_F32", _pack_rtz),
    ("V_ACCVGPR", _accumulator), ("V_MFMA", _matrix), ("V_SMFMAC", _matrix), ("V_WMMA", _matrix),
    ("V_SWMMAC", _matrix), ("V_MOVREL", _relative), ("V_MOV_B32", move),
)  # fmt: skip
