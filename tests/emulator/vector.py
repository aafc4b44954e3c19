"""Vector instructions: operands, the manual's meaning, modifiers of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import denormals, older
from emulator.errors import EmulationError
from emulator.manual_compile import Meaning, meaning
from emulator.operands import Array, Reader, dpp, format_of, half, raw, reader, sdwa_source, signed, vector_reader
from emulator.program import plain_name
from emulator.results import finisher, place
from emulator.special import SPECIAL, check_modifiers
from emulator.wave import VCC

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

_CACHE: dict[tuple[str, Any], Meaning] = {}


@dataclass(frozen=True)
class Fields:
    """What descriptions read of an instruction itself."""

    opsel: Array
    opsel_hi: Array
    neg: Array
    simm16: Array
    simm32: Array
    src0_sel: Array


def fields(inst: Any) -> Fields:
    """The fields, as arrays with one element."""
    opsel_hi = raw(inst, "opsel_hi") | raw(inst, "opsel_hi2") << 2
    words = [raw(inst, "opsel"), opsel_hi, raw(inst, "neg")]
    arrays = [np.array([word], np.uint32) for word in words]
    simm16 = np.array([raw(inst, "simm16")], np.uint16).view(np.int16)
    literal = np.array([raw(inst, "literal")], np.uint32)
    return Fields(*arrays, simm16, literal, np.array([raw(inst, "src0_sel", 6)], np.uint32))


def described(program: Program, op: Any) -> Meaning:
    """The meaning of an operation, compiled once."""
    found = _CACHE.get((program.family, op))
    if found is None:
        operands = program.tables.operands.get(op, {})
        widths = {"D0": 64 if format_of(operands, "vdst", "sdst")[1] > 32 else 32}
        for index in range(3):
            names = (f"src{index}", f"vsrc{index}", f"ssrc{index}")
            widths[f"S{index}"] = 64 if format_of(operands, *names)[1] > 32 else 32
        text = {**program.tables.descriptions, **older.DESCRIPTIONS}.get(op) or program.tables.other(
            op.name.removesuffix("_E64").replace("V_DUAL_", "V_")
        )
        found = meaning(op.name, text, widths, program.tables.other)
        _CACHE[program.family, op] = found
    return found


def _source(program: Program, inst: Any, index: int, operands: dict[str, Any]) -> Reader | None:
    """The reader of source ``index`` with its modifiers, without those of DPP and SDWA."""
    name = f"src{index}" if hasattr(type(inst), f"src{index}") else f"vsrc{index}"
    field = getattr(type(inst), name, None)
    if field is None or not any(key in operands for key in (f"src{index}", f"vsrc{index}")):
        return None
    form, bits = format_of(operands, f"src{index}", f"vsrc{index}")
    kind = type(inst).__name__
    code = raw(inst, name) + (256 if name.startswith("v") or (field.mask == 255 and name.startswith("vsrc")) else 0)
    if index == 0 and ("DPP" in kind or "SDWA" in kind):
        code = raw(inst, "vsrc0") + (0 if "SDWA" in kind and raw(inst, "s0") else 256)
    if index == 1 and "SDWA" in kind and raw(inst, "s1"):
        code = raw(inst, "vsrc1")
    high = bool(raw(inst, "opsel") >> index & 1) and kind.startswith("VOP3")
    if bits == 16 and program.family != "cdna" and not kind.startswith("VOP3") and code >= 256 + 128:
        code, high = code - 128, True
    if kind.startswith("VOP3P"):
        return _packed_source(program, inst, index, code, form, bits)
    read = reader(program.family, code, form, bits, raw(inst, "literal"))
    if bits == 16 and "SDWA" not in kind:
        read = half(read, (high and code >= 256) or (high and code < 128))
    if "SDWA" in kind:
        read = sdwa_source(read, raw(inst, f"src{index}_sel", 6), raw(inst, f"src{index}_sext"))
    negate = raw(inst, "neg") >> index & 1 or raw(inst, f"src{index}_neg")
    absolute = raw(inst, "abs") >> index & 1 or raw(inst, f"src{index}_abs")
    return signed(read, bits if form[0] in "FB" or bits != 16 else 32, bool(negate), bool(absolute))


def _packed_source(program: Program, inst: Any, index: int, code: int, form: str, bits: int) -> Reader:
    """VOP3P: op_sel chooses each half, neg applies to each."""
    name = plain_name(inst)
    read = reader(program.family, code, form, bits, raw(inst, "literal"))
    low = raw(inst, "opsel") >> index & 1
    opsel_hi = raw(inst, "opsel_hi") | raw(inst, "opsel_hi2") << 2
    high = opsel_hi >> index & 1
    neg_low, neg_high = raw(inst, "neg") >> index & 1, raw(inst, "neg_hi") >> index & 1
    if "_MIX" in name:  # the description reads op_sel itself; neg_hi is the absolute value there
        is_half = bool(high)
        sign = 0x80008000 if is_half else 0x80000000

        def mixed(wave: Wave) -> Array:
            value = read(wave)
            if is_half and 240 <= code <= 248:
                value = reader(program.family, code, "F16", 16, 0)(wave)
            if neg_high:
                value = value & np.uint32(~sign & 0xFFFFFFFF)
            return value ^ np.uint32(sign) if neg_low else value

        return mixed
    if name == "V_PK_MOV_B32":
        return read
    wide = bits > 32
    if name.startswith("V_DOT") and not form.startswith("PK2"):
        return read if "F32" not in form else signed(read, 32, bool(neg_low), bool(neg_high))
    kind = np.uint64 if wide else np.uint32
    size = kind(32 if wide else 16)
    ones = kind((1 << int(size)) - 1)
    flip = kind(neg_low << (int(size) - 1) | neg_high << (2 * int(size) - 1))
    scalar = wide and code < 256

    def run(wave: Wave) -> Array:
        value = read(wave)
        if scalar and not 0 <= code < 128:
            value = value & ones | value << size  # a constant stands in both halves
        first = value >> size if low else value & ones
        second = value >> size if high else value & ones
        return (first | second << size) ^ flip

    if low == 0 and high == 1 and not flip and not (scalar and code >= 128):
        return read
    return run


def step(program: Program, inst: Any) -> Callable[[Wave], None]:
    """A vector instruction as a function of a wave."""
    name = plain_name(inst)
    op = getattr(inst, "instead", inst.op)
    operands = program.tables.operands.get(inst.op, {})
    kind = type(inst).__name__
    readers = [_source(program, inst, index, operands) for index in range(3)]
    written: list[Callable[[Wave], Array]] = []
    if "DPP16" in kind:
        base, waves = readers[0], {}

        def moved(wave: Wave) -> tuple[Reader, Callable[[Wave], Array]]:
            if wave.lanes not in waves:
                assert base
                waves[wave.lanes] = dpp(base, inst, wave.lanes, program.family)
            return waves[wave.lanes]

        readers[0] = lambda wave: moved(wave)[0](wave)
        written.append(lambda wave: moved(wave)[1](wave))
    elif "DPP" in kind:
        raise EmulationError("DPP8")
    readers[0] = denormals.limited_turns(name, readers[0])

    def made(flush: bool) -> Callable[[Wave], None]:
        used = [
            denormals.flushing(read) if flush and read and _is_flushed(inst, operands, index) else read
            for index, read in enumerate(readers)
        ]
        for prefix, build in SPECIAL:
            if name.startswith(prefix):
                run = build(program, inst, name, used)
                if run is not None:
                    check_modifiers(inst, name)
                    return run
        return _general(program, inst, op, operands, used, written, flush)

    dot = name == "V_DOT2_F32_F16" and program.chip == "gfx90a"
    if dot:
        readers[:2] = [denormals.flushing_halves(read) for read in readers[:2] if read]
    if dot or name in denormals.ALWAYS:
        return made(True)
    concerned = denormals.is_f32(format_of(operands, "vdst")[0])
    concerned = concerned or any(_is_flushed(inst, operands, index) for index in range(3))
    if not concerned or not denormals.obeys_mode(name):
        return made(False)
    return denormals.by_mode(made(False), made(True))


def _is_flushed(inst: Any, operands: dict[str, Any], index: int) -> bool:
    """Whether a source holds numbers of f32."""
    if "_MIX" in plain_name(inst):
        return not (raw(inst, "opsel_hi") | raw(inst, "opsel_hi2") << 2) >> index & 1
    return denormals.is_f32(format_of(operands, f"src{index}", f"vsrc{index}")[0])


def _general(
    program: Program, inst: Any, op: Any, operands: dict[str, Any], readers: list[Reader | None],
    written: list[Callable[[Wave], Array]], flush: bool,
) -> Callable[[Wave], None]:  # fmt: skip
    kind, name = type(inst).__name__, plain_name(inst)
    means = described(program, op)
    has_sdst = "SD" in kind.split("_")[0] or "SDST" in kind
    compare = kind.startswith("VOPC") or name.startswith("V_CMP")
    destination, high = (-1, False) if compare else place(program, inst, means)
    form, bits = format_of(operands, "vdst")
    mask_out = raw(inst, "sdst") if "VOP3SD" in kind or ("SDWA_SDST" in kind and raw(inst, "sd")) else VCC
    if compare and kind.startswith("VOP3"):
        mask_out = raw(inst, "vdst")
    mask_in = VCC
    if kind.startswith("VOP3") and ("CNDMASK" in name or "ADDC" in name or "SUBB" in name or "_CI_" in name):
        mask_in = raw(inst, "src2")
    flush = flush and denormals.is_f32(form)
    finish = finisher(program, inst, means, form, bits, flush)
    details = fields(inst)
    sources = [read or (lambda wave: None) for read in readers]
    first, second, third = sources
    outputs, run_meaning = means.outputs, means.run
    needs_old = "D0" in means.reads
    needs_mask = "MASK" in means.text
    wide = bits > 32
    old = vector_reader(max(destination, 0), bits)
    if flush:
        old = denormals.flushing(old)
    if means.narrow and high:  # v_fmac_f16 adds to the half that it writes
        old = half(old, high)
    scalar_result = has_sdst and not compare and "VOP3SD" not in kind

    def run(wave: Wave) -> None:
        mask = None
        if needs_mask:
            mask = wave.mask_at(mask_in)
        made = run_meaning(
            wave.vector, details, first(wave), second(wave), third(wave), old(wave) if needs_old else None, mask
        )
        active = wave.active
        for allow in written:
            active = active & allow(wave)
        for output, value in zip(outputs, made, strict=True):
            if output == "D0":
                value = finish(wave, value)
                if scalar_result:
                    wave.set_scalar(raw(inst, "vdst"), value[:1])
                elif wide:
                    np.copyto(wave.v[destination], value.astype(np.uint32), where=active)
                    np.copyto(wave.v[destination + 1], (value >> np.uint64(32)).astype(np.uint32), where=active)
                else:
                    np.copyto(wave.v[destination], value, where=active)
            elif output in ("D0M", "VCC"):
                wave.set_mask(mask_out, value & wave.active)
            elif output == "EXEC":
                wave.set_mask(126, value & wave.active)

    return run


def dual_step(program: Program, inst: Any) -> Callable[[Wave], None]:
    """VOPD: two operations whose sources are all read first."""
    literal = raw(inst, "literal")
    parts = []
    for side in "xy":
        op = getattr(inst, f"op{side}")
        name = op.name.replace("V_DUAL_", "V_")
        first = reader(program.family, raw(inst, f"src{side}0"), "F32", 32, literal)
        second = vector_reader(raw(inst, f"vsrc{side}1"), 32)
        register = raw(inst, "vdstx") if side == "x" else inst.vdsty.offset - 256
        means = described(program, op)
        parts.append((means, first, second, register, name, name.endswith("F32")))
    details = fields(inst)

    def run(wave: Wave) -> None:
        results = []
        for means, first, second, register, name, is_f32 in parts:
            mask = wave.mask_at(VCC) if "CNDMASK" in name else None
            sources = first(wave), second(wave), wave.v[register]
            flush = is_f32 and not wave.mode & denormals.KEPT_F32
            if flush:
                sources = tuple(map(denormals.flushed, sources))
            made = means.run(wave.vector, details, *sources[:2], None, sources[2], mask)
            result = made[means.outputs.index("D0")]
            result = denormals.flushed(result) if flush else result
            results.append((register, np.broadcast_to(result, wave.lanes).copy()))
        for register, value in results:
            wave.set_vector(register, value)

    return run
