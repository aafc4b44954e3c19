"""Buffer instructions: memory behind a descriptor that says where it ends. What lies behind the end reads as 0.

Chips before flat scratch reach their stack through a buffer, too, whose words are interleaved by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.operands import Array, raw, reader
from emulator.spaces import GLOBAL, PRIVATE

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave


SCRATCH = (0, 1 << 31, 0xFFFFFFFF, 0x00E00000)
"""The descriptor of a wave's scratch: swizzled, by elements of 4 bytes, with the lane's number added to the index."""


class _Bounded:
    """Memory of the process up to the wave's ``limit``, which is an address per lane."""

    def __init__(self) -> None:
        self.limit: Array = None

    def _inside(self, addresses: Array, lanes: Array, at: int, size: int) -> Array:
        return addresses + np.uint64(at + size) <= self.limit[lanes]

    def read(self, wave: Wave, lanes: Array, addresses: Array, size: int) -> Array:
        result = np.zeros((len(lanes), size), np.uint8)
        unit = min(size, 4)
        for at in range(0, size, unit):
            chosen = np.flatnonzero(self._inside(addresses, lanes, at, unit))
            part = GLOBAL.read(wave, lanes[chosen], addresses[chosen] + np.uint64(at), unit)
            result[chosen, at : at + unit] = part
        return result

    def write(self, wave: Wave, lanes: Array, addresses: Array, data: Array) -> None:
        unit = min(data.shape[1], 4)
        for at in range(0, data.shape[1], unit):
            chosen = np.flatnonzero(self._inside(addresses, lanes, at, unit))
            GLOBAL.write(wave, lanes[chosen], addresses[chosen] + np.uint64(at), data[chosen, at : at + unit])


def step(program: Program, inst: Any, name: str) -> Callable[[Wave], None]:
    """A buffer instruction as a function of a wave."""
    from emulator.memory_steps import access_of, sign_extended

    is12 = program.family == "rdna4"
    if raw(inst, "idxen") or raw(inst, "lds") or raw(inst, "tfe"):
        raise EmulationError(f"{name} with an index, to local data share or with a status word")
    accumulators = 256 if raw(inst, "acc") else 0
    data = raw(inst, "vdata") + accumulators
    offset = sign_extended(raw(inst, "ioffset"), 24) if is12 else raw(inst, "offset")
    descriptor = raw(inst, "rsrc") if is12 else 4 * raw(inst, "srsrc")
    start = reader(program.family, raw(inst, "soffset"), "B32", 32, 0)
    has_offset, register = raw(inst, "offen"), raw(inst, "vaddr")
    space = _Bounded()
    act = access_of(program, inst, name.replace("FORMAT_", ""), space, data, data)
    act_on_scratch = access_of(program, inst, name, PRIVATE, data, data)

    def run(wave: Wave) -> None:
        words = [int(word) for word in wave.s[descriptor : descriptor + 4]]
        on_scratch = tuple(words) == SCRATCH
        if (words[1] >> 16 & 0x3FFF or words[1] >> 30) and not on_scratch:
            raise EmulationError(f"{name} of a buffer with a stride or swizzle")
        lanes = np.flatnonzero(wave.active)
        if not len(lanes):
            return
        base = words[0] | (words[1] & 0xFFFF) << 32
        base_offset = int(start(wave)[0])
        within = np.full(len(lanes), offset, np.uint64)
        if has_offset:
            within = within + wave.v[register, lanes].astype(np.uint64)
        if on_scratch:  # the scalar offset is the wave's, of all lanes together
            act_on_scratch(wave, lanes, within + np.uint64(base_offset // wave.lanes))
            return
        space.limit = np.full(wave.lanes, base + words[2], np.uint64)
        act(wave, lanes, within + np.uint64(base + base_offset))

    return run
