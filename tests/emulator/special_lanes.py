"""Vector instructions that move data between lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.operands import Reader, raw

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave

Run = Callable[["Wave"], None]
Readers = list[Reader | None]


def first_lane(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    (source, destination) = sources[0], raw(inst, "vdst")
    assert source

    def run(wave: Wave) -> None:
        lanes = np.flatnonzero(wave.active)
        value = np.broadcast_to(source(wave), wave.lanes)
        wave.set_scalar(destination, value[lanes[0] if len(lanes) else 0 :][:1])

    return run


def read_lane(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    source, lane, destination = sources[0], sources[1], raw(inst, "vdst")
    assert source and lane

    def run(wave: Wave) -> None:
        number = int(lane(wave)[0]) % wave.lanes
        wave.set_scalar(destination, np.broadcast_to(source(wave), wave.lanes)[number : number + 1])

    return run


def write_lane(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    source, lane, destination = sources[0], sources[1], raw(inst, "vdst")
    assert source and lane

    def run(wave: Wave) -> None:
        wave.v[destination, int(lane(wave)[0]) % wave.lanes] = source(wave)[0]

    return run


def swap(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    if name != "V_SWAP_B32":
        return None
    first, second = raw(inst, "vdst"), raw(inst, "src0") - 256

    def run(wave: Wave) -> None:
        kept = wave.v[first].copy()
        wave.set_vector(first, wave.v[second])
        wave.set_vector(second, kept)

    return run


def permlane_swap(program: Program, inst: Any, name: str, sources: Readers) -> Run | None:
    """Rows of the destination and the source trade places, whatever EXEC says of the other side."""
    if not name.endswith("_SWAP_B32"):
        return None
    first, second = raw(inst, "vdst"), raw(inst, "src0") - 256
    size = 16 if "16" in name else 32

    def run(wave: Wave) -> None:
        lane = np.arange(wave.lanes)
        low = lane[lane & size == 0]
        kept = wave.v[second, low].copy()
        wave.v[second, low] = wave.v[first, low + size]
        wave.v[first, low + size] = kept

    return run


def permlane(program: Program, inst: Any, name: str, sources: Readers) -> Run:
    """v_permlane16, v_permlanex16: any lane of the row, or of its neighbour; v_permlane64: the other half."""
    destination = raw(inst, "vdst")
    source = sources[0]
    assert source
    fetch, bound = bool(raw(inst, "opsel") & 1), bool(raw(inst, "opsel") & 2)

    def run(wave: Wave) -> None:
        lane = np.arange(wave.lanes)
        value = np.broadcast_to(source(wave), wave.lanes)
        if name == "V_PERMLANE64_B32":
            if wave.lanes == 64:
                wave.set_vector(destination, value[lane ^ 32])
            return
        if "VAR" in name:
            assert sources[1]
            select = np.broadcast_to(sources[1](wave), wave.lanes).astype(np.int64) & 15
        else:
            assert sources[1] and sources[2]
            word = int(sources[1](wave)[0]) | int(sources[2](wave)[0]) << 32
            select = np.array([word >> 4 * place & 15 for place in range(16)])[lane & 15]
        other = (lane & ~15 ^ (16 if "X16" in name else 0)) | select
        valid = wave.active[other] | fetch
        old = wave.v[destination]
        wave.set_vector(destination, np.where(valid, value[other], np.uint32(0) if bound else old))

    return run
