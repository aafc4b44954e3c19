"""Operands: registers, constants and the modifiers of an instruction, as functions that read them from a wave.

A reader gives raw bits: an array of ``uint32``, or ``uint64`` for operands of two registers, an element per lane or
one for all lanes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.memory import PRIVATE_BASE, SHARED_BASE, WINDOW

if TYPE_CHECKING:
    from emulator.wave import Wave

Array = Any
Reader = Callable[["Wave"], Array]
_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189532}
_APERTURES = {235: SHARED_BASE, 236: SHARED_BASE + WINDOW - 1, 237: PRIVATE_BASE, 238: PRIVATE_BASE + WINDOW - 1}
_FORMS = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}


def raw(inst: Any, name: str, default: int = 0) -> int:
    """The bits of a field, ``default`` where the encoding has none of that name."""
    field = getattr(type(inst), name, None)
    return default if field is None else (inst._raw >> field.lo) & field.mask


def format_of(operands: dict[str, tuple[Any, int, Any]], *names: str) -> tuple[str, int]:
    """The format of an operand, as "F16", and its bits."""
    for name in names:
        if name in operands:
            return operands[name][0].name.removeprefix("FMT_NUM_"), operands[name][1]
    return "B32", 32


def constant(code: int, form: str, bits: int, literal: int) -> int | None:
    """The value of an inline constant or literal; None for a register."""
    if 128 <= code <= 208:
        value = code - 128 if code <= 192 else 192 - code
        return value & ((1 << (64 if bits > 32 else 32)) - 1)
    if code in _FLOATS:
        if form in ("BF16", "PK2_BF16"):
            return struct.unpack("<I", struct.pack("<f", _FLOATS[code]))[0] >> 16
        size = 16 if bits == 16 or form.startswith("PK2_F16") else 32 if bits == 32 or form.startswith("PK2") else 64
        pack, unpack = _FORMS[size]
        return int(struct.unpack(unpack, struct.pack(pack, _FLOATS[code]))[0])
    if code == 255:
        if bits > 32 and form == "F64":
            return literal << 32
        if bits > 32 and form.startswith("I"):
            return (literal - ((literal & 1 << 31) << 1)) & 0xFFFFFFFFFFFFFFFF
        return literal
    return None


def reader(wave_family: str, code: int, form: str, bits: int, literal: int) -> Reader:
    """Reads the operand that 9 bits of an instruction name."""
    value = constant(code, form, bits, literal)
    wide = bits > 32
    if value is not None:
        held = np.array([value], np.uint64 if wide else np.uint32)
        return lambda wave: held
    if code >= 256:
        return vector_reader(code - 256, bits)
    if code in _APERTURES:
        held = np.array([_APERTURES[code]], np.uint64)
        return (lambda wave: held) if wide else (lambda wave: (held >> np.uint64(32)).astype(np.uint32))
    if code == 253:
        return lambda wave: np.array([wave.scc], np.uint64 if wide else np.uint32)
    if code in (251, 252):  # VCCZ, EXECZ
        register = 106 if code == 251 else 126
        return lambda wave: np.array([wave.get64(register) == 0], np.uint32)
    if code >= 128:
        raise EmulationError(f"an unknown operand {code}")
    if wide:
        if code == 124 and wave_family != "cdna":
            zero = np.zeros(1, np.uint64)
            return lambda wave: zero
        return lambda wave: wave.s[code : code + 2].view(np.uint64)
    return lambda wave: wave.s[code : code + 1]


def vector_reader(register: int, bits: int) -> Reader:
    """Reads a vector register or two."""
    if bits > 32:
        shift = np.uint64(32)
        return lambda wave: wave.v[register].astype(np.uint64) | wave.v[register + 1].astype(np.uint64) << shift
    return lambda wave: wave.v[register]


def half(read: Reader, high: bool) -> Reader:
    """Sixteen bits of a register."""
    if high:
        return lambda wave: read(wave) >> np.uint32(16)
    return lambda wave: read(wave) & np.uint32(0xFFFF)


def signed(read: Reader, bits: int, negate: bool, absolute: bool) -> Reader:
    """The modifiers of floats, on their bits."""
    if not negate and not absolute:
        return read
    kind = np.uint64 if bits > 32 else np.uint32
    sign = kind(1 << (min(bits, 64) - 1))

    def run(wave: Wave) -> Array:
        value = read(wave)
        if absolute:
            value = value & ~sign
        return value ^ sign if negate else value

    return run


def dpp_lanes(control: int, lanes: int, family: str) -> Array:
    """For each lane the lane that it reads, or -1."""
    lane = np.arange(lanes)
    row, place = lane & ~15, lane & 15
    if control < 0x100:
        return (lane & ~3) | (control >> (2 * (lane & 3)) & 3)
    if 0x101 <= control <= 0x10F:
        return np.where(place + (control & 15) < 16, lane + (control & 15), -1)
    if 0x111 <= control <= 0x11F:
        return np.where(place >= (control & 15), lane - (control & 15), -1)
    if 0x121 <= control <= 0x12F:
        return row | (place - (control & 15)) & 15
    if control == 0x140:
        return row | 15 - place
    if control == 0x141:
        return (lane & ~7) | 7 - (lane & 7)
    if family == "cdna":
        if control in (0x130, 0x134):  # wave_shl, wave_rol
            return np.where(lane + 1 < lanes, lane + 1, -1 if control == 0x130 else 0)
        if control in (0x138, 0x13C):  # wave_shr, wave_ror
            return np.where(lane >= 1, lane - 1, -1 if control == 0x138 else lanes - 1)
        if control == 0x142:  # row_bcast:15
            return np.where(lane >= 16, (lane & ~15) - 1, -1)
        if control == 0x143:  # row_bcast:31
            return np.where(lane >= 32, 31, -1)
        if 0x150 <= control <= 0x15F:  # row_newbcast
            return row | control & 15
    elif 0x150 <= control <= 0x15F:  # row_share
        return row | control & 15
    elif 0x160 <= control <= 0x16F:  # row_xmask
        return row | (place ^ control & 15)
    raise EmulationError(f"an unknown DPP control {control:#x}")


def dpp(read: Reader, inst: Any, lanes: int, family: str) -> tuple[Reader, Callable[[Wave], Array]]:
    """A source that comes from other lanes, and which lanes of the destination are written."""
    source = dpp_lanes(raw(inst, "dpp"), lanes, family)
    lane = np.arange(lanes)
    chosen = (raw(inst, "row_mask") >> (lane >> 4 & 3) & 1).astype(bool)
    chosen &= (raw(inst, "bank_mask") >> (lane >> 2 & 3) & 1).astype(bool)
    inside, index = source >= 0, np.maximum(source, 0)
    bound_control, inactive = raw(inst, "bc"), raw(inst, "fi")

    def valid(wave: Wave) -> Array:
        return inside if inactive else inside & wave.active[index]

    def run(wave: Wave) -> Array:
        value = np.broadcast_to(read(wave), lanes)[index]
        return np.where(valid(wave), value, value.dtype.type(0))

    def written(wave: Wave) -> Array:
        return chosen if bound_control else chosen & valid(wave)

    return run, written


def sdwa_source(read: Reader, select: int, extend: int) -> Reader:
    """A byte or a word of a register."""
    if select == 6:
        return read
    bits, shift = (8, 8 * select) if select < 4 else (16, 16 * (select - 4))
    up, down = np.uint32(32 - bits - shift), np.uint32(32 - bits)
    if extend:
        return lambda wave: ((read(wave) << up).view(np.int32) >> down.view(np.int32)).view(np.uint32)
    return lambda wave: (read(wave) << up) >> down
