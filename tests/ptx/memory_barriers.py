"""Barriers in shared memory (mbarrier): arrivals, and bytes that asynchronous copies bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.access import address, split
from ptx.block import Block
from ptx.maker import Maker, Step
from ptx.spaces import owner_of
from ptx.table import instruction

Array = Any

_MANY_FAILED = 20_000
"""Waits without success, of a block, after which nobody will complete a barrier."""


@dataclass
class MemoryBarrier:
    """``phase`` counts how often it has been completed."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0

    def arrive(self, count: int) -> None:
        if count > self.pending:
            raise EmulationError(f"{count} arrivals at a barrier that waits for {self.pending}")
        self.pending -= count
        self.check()

    def bring(self, size: int) -> None:
        """Bytes that have come."""
        self.bytes -= size
        self.check()

    def check(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.count


def barrier_at(block: Block, place: int) -> MemoryBarrier:
    """The barrier at an address of shared memory."""
    owner, offset = owner_of(block, place)
    owner.watch.on = False
    if offset not in owner.memory_barriers:
        raise EmulationError(f"no barrier at {offset:#x} of shared memory: it was not initialised")
    found: MemoryBarrier = owner.memory_barriers[offset]
    return found


@instruction("mbarrier")
def _memory_barrier(maker: Maker) -> Step:
    name = maker.op[1]
    operands = list(maker.operands)
    gives = name in ("arrive", "arrive_drop", "test_wait", "try_wait", "pending_count")
    target = operands.pop(0) if gives else None
    if name not in ("init", "inval", "arrive", "expect_tx", "test_wait", "try_wait"):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    at = address(maker, operands[0])
    generic = split(maker)[0] == ""
    waits = name.endswith("wait")
    number = maker.source(operands[1], "u64" if waits and "parity" not in maker.op else "u32") if operands[1:] else None
    put = maker.target(target, "pred" if waits else "u64") if target is not None else None

    def places(block: Block) -> Array:
        found = at(block) & np.uint64(0xFFFFFFFF) if generic else at(block)
        if (found[block.active] % np.uint64(8)).any():
            raise EmulationError("a barrier in memory whose address is no multiple of 8")
        return found

    def wait(block: Block) -> None:
        assert number and put
        where, wanted = places(block), number(block)
        done = np.zeros(block.size, bool)
        for lane in block.indices.tolist():
            barrier = barrier_at(block, int(where[lane]))
            block.finish_copies(barrier)
            done[lane] = barrier.phase & 1 != wanted[lane] if "parity" in maker.op else barrier.phase > wanted[lane]
        block.failed_waits = 0 if done.any() else block.failed_waits + 1
        if block.failed_waits > _MANY_FAILED:
            raise EmulationError("a barrier in memory that nobody completes")
        if not done.all():
            block.patience = 0
        put(block, done)

    def arrive(block: Block) -> None:
        where, given = places(block), number(block) if number else None
        before = np.zeros(block.size, np.uint64)
        for lane in block.indices.tolist():
            value = 1 if given is None else int(given[lane])
            owner, offset = owner_of(block, int(where[lane]))
            if name == "init":
                owner.memory_barriers[offset] = MemoryBarrier(value, value)
            elif name == "inval":
                barrier_at(block, int(where[lane]))
                del owner.memory_barriers[offset]
            else:
                barrier = barrier_at(block, int(where[lane]))
                before[lane] = barrier.phase
                if "expect_tx" in maker.op:
                    barrier.bytes += value
                    value = 1
                if name == "arrive":
                    barrier.arrive(value)
        if put:
            put(block, before)

    return wait if waits else arrive
