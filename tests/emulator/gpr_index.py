"""gfx9's index mode: between s_set_gpr_idx_on and _off, M0 is added to the numbers of vector registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.operands import Reader, raw, reader
from emulator.program import plain_name

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]

_SOURCE, _DESTINATION = 1, 8  # bits of the mode: which operand moves


def step(program: Program, inst: Any, name: str, address: int) -> Run:
    """s_set_gpr_idx_on and _off. Of what stands between them only moves are known, which is what LLVM writes."""
    if name == "S_SET_GPR_IDX_OFF":
        return _off
    if name != "S_SET_GPR_IDX_ON":
        raise EmulationError(f"an unknown instruction: {name}")
    source = reader(program.family, raw(inst, "ssrc0"), "B32", 32, raw(inst, "literal"))
    bits = raw(inst, "ssrc1") & 15
    _check(program, address + inst.size())

    def run(wave: Wave) -> None:
        index = int(source(wave)[0]) & 0xFF
        wave.s[wave.m0] = int(wave.s[wave.m0]) & 0xFFFF0F00 | index | bits << 12
        wave.indexing = bits

    return run


def _off(wave: Wave) -> None:
    wave.indexing = 0


def _check(program: Program, address: int) -> None:
    while True:
        inst = program.instruction(address)
        name = plain_name(inst)
        if name == "S_SET_GPR_IDX_OFF":
            return
        if name != "V_MOV_B32" and name != "S_NOP":
            raise EmulationError(f"{name} between s_set_gpr_idx_on and s_set_gpr_idx_off")
        address += inst.size()


def move(program: Program, inst: Any, name: str, sources: list[Reader | None]) -> Run | None:
    """v_mov_b32, whose operands may move. None where it is another instruction or has another encoding."""
    if name != "V_MOV_B32" or program.family != "cdna" or type(inst).__name__ not in ("VOP1", "VOP1_LIT"):
        return None
    code, destination, source = raw(inst, "src0"), raw(inst, "vdst"), sources[0]
    assert source

    def run(wave: Wave) -> None:
        offset = int(wave.s[wave.m0]) & 0xFF if wave.indexing else 0
        moves = wave.indexing & _SOURCE and code >= 256
        value = wave.v[code - 256 + offset] if moves else source(wave)
        wave.set_vector(destination + (offset if wave.indexing & _DESTINATION else 0), np.asarray(value))

    return run
