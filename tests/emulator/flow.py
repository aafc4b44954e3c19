"""Program flow, waiting and the state of a wave: what the manuals' descriptions say in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import gpr_index
from emulator.denormals import check_mode
from emulator.errors import AbortedError, EmulationError
from emulator.operands import raw, reader
from emulator.program import plain_name
from emulator.wave import EXEC, VCC

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]

# Instructions about timing alone.
_NOTHING = (
    "S_NOP", "S_SLEEP", "S_SETPRIO", "S_DELAY_ALU", "S_CLAUSE", "S_INST_PREFETCH", "S_SET_INST_PREFETCH_DISTANCE",
    "S_ICACHE_INV", "S_SETHALT", "S_TTRACEDATA", "S_WAITCNT", "S_WAIT_", "S_CODE_END", "S_VERSION", "S_WAKEUP",
    "S_INCPERFLEVEL", "S_DECPERFLEVEL", "S_DCACHE",
)  # fmt: skip
_CONDITIONS: dict[str, Callable[[Wave], bool]] = {
    "S_BRANCH": lambda wave: True,
    "S_CBRANCH_SCC0": lambda wave: not wave.scc,
    "S_CBRANCH_SCC1": lambda wave: bool(wave.scc),
    "S_CBRANCH_VCCZ": lambda wave: not _mask(wave, VCC),
    "S_CBRANCH_VCCNZ": lambda wave: _mask(wave, VCC),
    "S_CBRANCH_EXECZ": lambda wave: not _mask(wave, EXEC),
    "S_CBRANCH_EXECNZ": lambda wave: _mask(wave, EXEC),
}


def _mask(wave: Wave, register: int) -> bool:
    return bool(wave.s[register] or (wave.lanes == 64 and wave.s[register + 1]))


def step(program: Program, inst: Any, address: int) -> Run | None:
    """A step, or None for arithmetic."""
    name = plain_name(inst)
    if name in _CONDITIONS:
        return _branch(_CONDITIONS[name], address + 4 + 4 * _signed(raw(inst, "simm16")))
    if name.startswith(("S_GETREG", "S_SETREG")):
        return _mode(program, inst, name)
    if name in ("S_ROUND_MODE", "S_DENORM_MODE"):
        return _mode_bits(raw(inst, "simm16") & 15, 4 if name == "S_DENORM_MODE" else 0)
    if name in ("S_GETPC_B64", "S_SETPC_B64", "S_SWAPPC_B64", "S_CALL_B64"):
        return _jump(program, inst, name, address)
    if name.startswith("S_ENDPGM"):
        return _end
    if name.startswith("S_BARRIER"):
        return _barrier(name)
    if name.startswith("S_SENDMSG"):
        return _message(inst, name)
    if name.startswith("S_SET_GPR_IDX"):
        return gpr_index.step(program, inst, name, address)
    if name == "S_TRAP":
        return _trap(raw(inst, "simm16"))
    if name.startswith(_NOTHING):
        return lambda wave: None
    return None


def _signed(value: int) -> int:
    return value - ((value & 0x8000) << 1)


def _branch(condition: Callable[[Wave], bool], target: int) -> Run:
    def run(wave: Wave) -> None:
        if condition(wave):
            wave.pc = target

    return run


def _end(wave: Wave) -> None:
    wave.ended = True


def _barrier(name: str) -> Run:
    def run(wave: Wave) -> None:
        if name != "S_BARRIER_WAIT":
            wave.signals += 1
        if not name.startswith("S_BARRIER_SIGNAL"):
            wave.waits += 1

    if name not in ("S_BARRIER", "S_BARRIER_WAIT", "S_BARRIER_SIGNAL"):
        raise EmulationError(f"an unknown barrier {name}")
    return run


def _trap(number: int) -> Run:
    def run(wave: Wave) -> None:
        raise AbortedError(f"s_trap {number}: the program aborted")

    return run


def _message(inst: Any, name: str) -> Run:
    number = raw(inst, "simm16") & 0xFF
    if name in ("S_SENDMSG_RTN_B64", "S_SENDMSG_RTN_B32"):
        raise EmulationError(f"an unknown message {raw(inst, 'ssrc0')} with an answer")
    if number not in (1, 3):  # interrupt: a hostcall, which the host looks for by itself; dealloc_vgprs

        def refuse(wave: Wave) -> None:
            raise EmulationError(f"an unknown message {number}")

        return refuse

    def run(wave: Wave) -> None:
        if number == 1:
            wave.program.hostcalls.serve()

    return run


def _jump(program: Program, inst: Any, name: str, address: int) -> Run:
    destination = raw(inst, "sdst")
    source = reader(program.family, raw(inst, "ssrc0"), "B64", 64, 0)
    target = address + 4 + 4 * _signed(raw(inst, "simm16"))

    def run(wave: Wave) -> None:
        goal = target if name == "S_CALL_B64" else int(source(wave)[0])
        if name != "S_SETPC_B64":
            wave.set_scalar(destination, np.array([address + 4], np.uint64).view(np.uint32))
        if name != "S_GETPC_B64":
            wave.pc = goal

    return run


def _mode(program: Program, inst: Any, name: str) -> Run:
    """s_getreg and s_setreg; of the hardware's registers MODE alone may be written."""
    field = raw(inst, "simm16")
    register, offset, size = field & 63, field >> 6 & 31, (field >> 11 & 31) + 1
    ones = (1 << size) - 1
    destination = raw(inst, "sdst")
    source = reader(program.family, destination, "B32", 32, 0)

    def run(wave: Wave) -> None:
        if name.startswith("S_GETREG"):
            wave.set_scalar(destination, np.array([_register(wave, register) >> offset & ones], np.uint32))
            return
        if register != 1:
            raise EmulationError(f"a write to the hardware register {register}")
        value = raw(inst, "literal") if "IMM32" in name else int(source(wave)[0])
        wave.mode = wave.mode & ~(ones << offset) | (value & ones) << offset
        check_mode(wave.mode)

    return run


def _mode_bits(value: int, offset: int) -> Run:
    """Four bits of MODE."""

    def run(wave: Wave) -> None:
        wave.mode = wave.mode & ~(15 << offset) | value << offset
        check_mode(wave.mode)

    return run


def _register(wave: Wave, number: int) -> int:
    if number == 1:
        return wave.mode
    if number in (4, 23, 24):  # where the wave is: unit, engine
        return 0
    if number == 20 and wave.program.family == "cdna":  # XCC_ID
        return 0
    raise EmulationError(f"an unknown hardware register {number}")
