"""Asynchronous copies into shared memory: their bytes are there when they have been waited for, not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx import tensor_maps
from ptx.access import address
from ptx.block import Block
from ptx.maker import Maker, Step
from ptx.memory_barriers import barrier_at
from ptx.spaces import check_aligned, read, write
from ptx.syntax import Address
from ptx.table import instruction

Array = Any


@dataclass
class Copy:
    """One instruction's copies, of several lanes; ``groups`` by lane, -1 where it has none yet."""

    lanes: Array
    to: Array
    given: Array
    size: int
    taken: Array
    groups: Array

    def finish(self, block: Block, chosen: Array) -> None:
        """Does those of the lanes chosen; what is not taken is 0."""
        for place in np.flatnonzero(chosen).tolist():
            one = slice(place, place + 1)
            data = np.zeros((1, self.size), np.uint8)
            if count := int(self.taken[place]):
                data[:, :count] = read(block, "global", self.lanes[one], self.given[one], count)
            write(block, "shared", self.lanes[one], self.to[one], data)


@instruction("cp")
def _copy(maker: Maker) -> Step:
    words = maker.op[2:]
    if maker.op[1] != "async":
        return tensor_maps.reduced(maker)
    if words[0] == "bulk":
        return tensor_maps.bulk(maker)
    if words[0] == "commit_group":
        return _commit
    if words[0] in ("wait_group", "wait_all"):
        left = maker.source(maker.operands[0], "u32") if maker.operands else None
        return lambda block: _wait(block, int(left(block)[block.indices[0]]) if left else -1)
    if words[0] == "mbarrier":
        return _arrive_after(maker)
    to, given = (address(maker, operand) for operand in maker.operands[:2])
    size = maker.source(maker.operands[2], "u32")
    taken = maker.source(maker.operands[3], "u32") if len(maker.operands) > 3 else size

    def step(block: Block) -> None:
        lanes = block.indices
        bytes_ = int(size(block)[lanes[0]])
        if bytes_ not in (4, 8, 16) or ("cg" in words and bytes_ != 16):
            raise EmulationError(f"a copy of {bytes_} bytes")
        places = to(block)[lanes], given(block)[lanes]
        for where in places:
            check_aligned(where, bytes_, "a copy")
        block.copies.append(Copy(lanes, *places, bytes_, taken(block)[lanes], np.full(len(lanes), -1)))

    return step


def _commit(block: Block) -> None:
    for copy in block.copies:
        mine = (copy.groups < 0) & block.active[copy.lanes]
        copy.groups = np.where(mine, block.copy_groups[copy.lanes], copy.groups)
    block.copy_groups = block.copy_groups + block.active


def _wait(block: Block, left: int) -> None:
    """For all groups of the active lanes but the last ones; -1: for copies without a group, too."""
    for copy in block.copies:
        last = block.copy_groups[copy.lanes] - max(left, 0)
        chosen = (
            (copy.groups < last) & ((copy.groups >= 0) | (left < 0)) & block.active[copy.lanes] & (copy.groups > -2)
        )
        copy.finish(block, chosen)
        copy.groups = np.where(chosen, -2, copy.groups)
    block.copies = [copy for copy in block.copies if (copy.groups > -2).any()]


def _arrive_after(maker: Maker) -> Step:
    """``cp.async.mbarrier.arrive``: here at once, after the lanes' copies."""
    assert isinstance(maker.operands[0], Address)
    at = address(maker, maker.operands[0])
    more = "noinc" not in maker.op

    def step(block: Block) -> None:
        _wait(block, -1)
        for place in at(block)[block.indices].tolist():
            barrier = barrier_at(block, place)
            barrier.pending += more
            barrier.arrive(1)

    return step
