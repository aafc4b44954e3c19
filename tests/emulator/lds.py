"""Instructions of the local data share, with those that move data between lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import access
from emulator.errors import EmulationError
from emulator.operands import raw
from emulator.spaces import LOCAL

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]


def step(program: Program, inst: Any, name: str) -> Run:
    """An instruction as a function of a wave."""
    if raw(inst, "gds"):
        raise EmulationError("the global data share")
    accumulators = 256 if raw(inst, "acc") else 0
    result, address = raw(inst, "vdst") + accumulators, raw(inst, "addr")
    first, second = raw(inst, "data0") + accumulators, raw(inst, "data1") + accumulators
    offset0, offset1 = raw(inst, "offset0"), raw(inst, "offset1")
    offset = offset0 | offset1 << 8
    if name == "DS_NOP":
        return lambda wave: None
    if "SWIZZLE" in name:
        return _swizzle(result, address, offset)
    if "PERMUTE" in name:
        return _permute(name, result, address, first, offset)
    pair = re.fullmatch(r"DS_(READ|LOAD|WRITE|STORE)_?2(?:ADDR)?(_?ST(?:RIDE)?64)?_B(32|64)", name)
    if pair:
        unit = int(pair.group(3)) // 8
        scale = unit * (64 if pair.group(2) else 1)
        return _pair(
            pair.group(1) in ("READ", "LOAD"),
            unit,
            result,
            address,
            (first, second),
            (offset0 * scale, offset1 * scale),
        )
    if "TR_B" in name or "ADDTID" in name or "APPEND" in name or "CONSUME" in name:
        raise EmulationError(f"an unknown instruction: {name}")
    if re.match(r"DS_(READ|LOAD)_", name):
        act = access.load(LOCAL, name, result)
    elif re.match(r"DS_(WRITE|STORE)_", name):
        act = access.store(LOCAL, name, first)
    else:
        value, compared = (second, first) if "CMPST_" in name else (first, second)
        act = access.atomic(LOCAL, name, result if "RTN" in name or "WRXCHG" in name else None, value, compared)

    def run(wave: Wave) -> None:
        lanes = np.flatnonzero(wave.active)
        if len(lanes):
            act(wave, lanes, wave.v[address, lanes] + np.uint32(offset))

    return run


def _pair(is_load: bool, unit: int, result: int, address: int, data: tuple[int, int], offsets: tuple[int, int]) -> Run:
    """Two accesses with offsets of their own."""
    words = unit // 4
    acts = []
    for index in range(2):
        name = f"DS_{'LOAD' if is_load else 'STORE'}_B{8 * unit}"
        if is_load:
            acts.append(access.load(LOCAL, name, result + index * words))
        else:
            acts.append(access.store(LOCAL, name, data[index]))

    def run(wave: Wave) -> None:
        lanes = np.flatnonzero(wave.active)
        if not len(lanes):
            return
        start = wave.v[address, lanes].copy()  # the first result may take its place
        for act, offset in zip(acts, offsets, strict=True):
            act(wave, lanes, start + np.uint32(offset))

    return run


def _permute(name: str, result: int, address: int, data: int, offset: int) -> Run:
    back = "BPERMUTE" in name

    def run(wave: Wave) -> None:
        other = ((wave.v[address] + np.uint32(offset)) >> np.uint32(2)) % np.uint32(wave.lanes)
        if wave.lanes == 64 and wave.program.family == "rdna3":  # within halves of a wave
            other = other % np.uint32(32) + (np.arange(64, dtype=np.uint32) & np.uint32(32))
        active = wave.active
        moved = np.zeros(wave.lanes, np.uint32)
        if back:
            fetch = "FI" in name
            moved = np.where(active[other] | fetch, wave.v[data][other], np.uint32(0))
        else:
            for lane in np.flatnonzero(active):
                moved[other[lane]] = wave.v[data, lane]
        wave.set_vector(result, moved)

    return run


def _swizzle(result: int, data: int, offset: int) -> Run:
    def run(wave: Wave) -> None:
        lane = np.arange(wave.lanes)
        if offset >= 0xE000:
            raise EmulationError("swizzle in the order of Fourier transforms")
        if offset >= 0xC000:  # rotate
            amount = offset >> 5 & 31
            amount = -amount if offset & 0x400 else amount
            keep = offset & 31
            source = (lane & ~31) | (lane & keep) | ((lane + amount) & ~keep & 31)
        elif offset & 0x8000:
            source = (lane & ~3) | (offset >> (2 * (lane & 3)) & 3)
        else:
            and_, or_, xor = offset & 31, offset >> 5 & 31, offset >> 10 & 31
            source = (lane & 32) | (((lane & and_) | or_) ^ xor) & 31
        moved = np.where(wave.active[source], wave.v[data][source], np.uint32(0))
        wave.set_vector(result, moved)

    return run
