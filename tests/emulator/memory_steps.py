"""Memory instructions: their addresses; what happens there is in ``access.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import access, lds
from emulator.errors import EmulationError
from emulator.operands import raw, reader
from emulator.program import plain_name
from emulator.spaces import FLAT, GLOBAL, PRIVATE

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Array = Any
Run = Callable[["Wave"], None]
Access = Callable[["Wave", Array, Array], None]

# Caches, which are not modelled.
_NOTHING = (
    "GLOBAL_INV", "GLOBAL_WB", "BUFFER_WBL2", "BUFFER_INV", "BUFFER_WBINV", "BUFFER_GL", "S_DCACHE", "S_PREFETCH",
    "S_GL1_INV", "S_ICACHE_INV",
)  # fmt: skip
_WIDE = {"X8": "B256", "X16": "B512", "B256": "B256", "B512": "B512"}


def memory_step(program: Program, inst: Any) -> Run:
    """A memory instruction as a function of a wave."""
    kind, name = type(inst).__name__, plain_name(inst)
    if name.startswith(_NOTHING):
        return lambda wave: None
    if kind == "SMEM":
        return _scalar(program, inst, name)
    if kind == "DS":
        return lds.step(program, inst, name)
    if kind in ("FLAT", "GLOBAL", "SCRATCH", "VFLAT", "VGLOBAL", "VSCRATCH"):
        return _vector(program, inst, kind.removeprefix("V"), name)
    if kind in ("MUBUF", "VBUFFER"):
        from emulator import buffers

        return buffers.step(program, inst, name)
    raise EmulationError(f"an unknown instruction: {name}")


def sign_extended(value: int, bits: int) -> int:
    """A field in two's complement."""
    return value - ((value & 1 << (bits - 1)) << 1)


def returns(program: Program, inst: Any) -> bool:
    """Does an atomic operation give the old value?"""
    if program.family == "rdna4":
        return bool(raw(inst, "th") & 1)
    return bool(raw(inst, "sc0" if program.family == "cdna" else "glc"))


def access_of(program: Program, inst: Any, name: str, space: Any, data: int, result: int) -> Access:
    """The load, store or atomic operation of an instruction."""
    if "ATOMIC" in name:
        words = 2 if access.atomic_of(name)[1].endswith("64") else 1
        return access.atomic(space, name, result if returns(program, inst) else None, data, data + words)
    if "LOAD" in name:
        return access.load(space, name, result)
    return access.store(space, name, data)


def _vector(program: Program, inst: Any, kind: str, name: str) -> Run:
    accumulators = 256 if raw(inst, "acc") else 0
    result = raw(inst, "vdst") + accumulators
    data = raw(inst, "data", raw(inst, "vsrc")) + accumulators
    register = raw(inst, "addr", raw(inst, "vaddr"))
    if program.family == "rdna4":
        offset = sign_extended(raw(inst, "ioffset"), 24)
    elif kind == "FLAT" and program.family == "cdna":
        offset = raw(inst, "offset")
    else:
        offset = sign_extended(raw(inst, "offset"), 13)
    base = raw(inst, "saddr")
    has_base = base != (127 if program.family == "cdna" else 124) and kind != "FLAT"
    space = {"FLAT": FLAT, "GLOBAL": GLOBAL, "SCRATCH": PRIVATE}[kind]
    act = access_of(program, inst, name, space, data, result)
    uses_vector = kind != "SCRATCH" or bool(raw(inst, "sve"))
    if name.startswith(("GLOBAL_LOAD_LDS", "GLOBAL_LOAD_ADDTID")):
        raise EmulationError(f"an unknown instruction: {name}")

    def run(wave: Wave) -> None:
        lanes = np.flatnonzero(wave.active)
        if not len(lanes):
            return
        if kind == "SCRATCH":
            start = (int(wave.s[base]) if has_base else 0) + offset
            addresses = np.full(len(lanes), start, np.int64)
            if uses_vector:
                addresses = addresses + wave.v[register, lanes]
            act(wave, lanes, addresses.astype(np.uint64))
            return
        if has_base:
            addresses = np.uint64(wave.get64(base)) + wave.v[register, lanes].astype(np.uint64)
        else:
            high = wave.v[register + 1, lanes].astype(np.uint64) << np.uint64(32)
            addresses = wave.v[register, lanes].astype(np.uint64) | high
        act(wave, lanes, addresses + np.uint64(offset & 0xFFFFFFFFFFFFFFFF))

    return run


def _scalar(program: Program, inst: Any, name: str) -> Run:
    destination, base = raw(inst, "sdata"), raw(inst, "sbase") * 2
    family = program.family
    offset = sign_extended(raw(inst, "ioffset"), 24) if family == "rdna4" else sign_extended(raw(inst, "offset"), 21)
    register: int | None = raw(inst, "soffset")
    if family == "cdna":
        if not raw(inst, "soffset_en"):
            register = None
            if not raw(inst, "imm"):
                register, offset = raw(inst, "offset") & 127, 0
        elif not raw(inst, "imm"):
            offset = 0
    read = (
        reader(family, register, "B32", 32, 0)
        if (register is not None and register != 124) or (register == 124 and (family == "cdna"))
        else None
    )
    if name.startswith(("S_MEMTIME", "S_MEMREALTIME")):

        def time(wave: Wave) -> None:
            wave.set_scalar(destination, np.array([wave.executed], np.uint64).view(np.uint32))

        return time
    if "LOAD" not in name:
        raise EmulationError(f"an unknown instruction: {name}")
    wide = [kind for ending, kind in _WIDE.items() if name.endswith(ending)]
    kind = wide[0] if wide else access.data_of(name)[1]
    size = int(kind[1:]) // 8
    is_buffer = name.startswith("S_BUFFER")

    def run(wave: Wave) -> None:
        start = wave.get64(base) & (0xFFFFFFFFFFFF if is_buffer else 0xFFFFFFFFFFFFFFFF)
        distance = offset + (int(read(wave)[0]) if read else 0)
        if is_buffer and distance + size > int(wave.s[base + 2]):
            raise EmulationError("a scalar read after the end of a buffer")
        address = (start + distance) & 0xFFFFFFFFFFFFFFFF
        if size >= 4 and address % 4:
            raise EmulationError(f"a scalar read of {size} bytes at {address:#x}, which is not a multiple of 4")
        data = np.frombuffer(wave.program.code.memory.read(address, size), np.uint8)
        words = access.loaded(data[None], kind)[:, 0]
        wave.set_scalar(destination, words)

    return run
