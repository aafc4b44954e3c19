"""What the lanes of a warp do together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import WARP, Block
from ptx.integers import unsigned
from ptx.kinds import DTYPES
from ptx.maker import Maker, Step
from ptx.table import instruction

Array = Any


@instruction("shfl")
def _shuffle(maker: Maker) -> Step:
    """``shfl.sync.mode.b32 d|p, a, b, c, members``: c has the clamp, and the mask of segments in bits 8 to 12."""
    if maker.op[1] != "sync":
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    mode = maker.op[2]
    first, second = maker.pair(maker.operands[0])
    put, put_inside = maker.put_bits(first, "b32"), maker.target(second, "pred")
    value, b, c, members = (maker.source(operand, "u32") for operand in maker.operands[1:5])

    def step(block: Block) -> None:
        if not block.together(members(block)):
            return
        lane = (block.lane % WARP).astype(np.int64)
        by, control = b(block).astype(np.int64) & 31, c(block).astype(np.int64)
        segments, clamp = control >> 8 & 31, control & 31
        most = (lane & segments) | (clamp & ~segments)
        least = lane & segments
        if mode == "up":
            place = lane - by
            inside = place >= most
        elif mode == "down":
            place = lane + by
            inside = place <= most
        elif mode == "bfly":
            place = lane ^ by
            inside = place <= most
        else:
            place = least | (by & ~segments)
            inside = place <= most
        place = np.where(inside, place, lane)
        from_lane = block.lane.astype(np.int64) // WARP * WARP + place
        unknown = block.active & ~block.active[from_lane]
        given = value(block)
        garbage = np.uint32(0xBADBAD00) + given  # of a lane that does not take part: anything
        put(block, np.where(unknown, garbage, given[from_lane]))
        put_inside(block, inside)

    return step


def _by_warp(lanes: Array) -> Array:
    """A mask of 32 bits, for each lane that of its warp."""
    return np.repeat(np.packbits(lanes, bitorder="little").view(np.uint32), WARP)


@instruction("vote")
def _vote(maker: Maker) -> Step:
    _, sync, how, kind = maker.op
    if sync != "sync":
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    put = maker.target(maker.operands[0], kind if kind == "pred" else "b32")
    given, members = maker.source(maker.operands[1], "pred"), maker.source(maker.operands[2], "u32")

    def step(block: Block) -> None:
        asked = members(block)
        if not block.together(asked):
            return
        yes = _by_warp(given(block) & block.active)
        here = _by_warp(block.active)
        put(
            block,
            {"ballot": lambda: yes, "all": lambda: yes == here, "any": lambda: yes != 0,
             "uni": lambda: (yes == here) | (yes == 0)}[how](),
        )  # fmt: skip

    return step


@instruction("activemask")
def _active_mask(maker: Maker) -> Step:
    put = maker.target(maker.operands[0], "b32")
    return lambda block: put(block, _by_warp(block.active))


@instruction("redux")
def _reduce(maker: Maker) -> Step:
    _, _, how, *modes, kind = maker.op
    functions = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }  # fmt: skip
    if set(modes) - {"NaN"}:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    reduce = functions[how]
    if kind == "f32" and not modes:
        reduce = {"min": np.fmin, "max": np.fmax}[how]
    put = maker.target(maker.operands[0], kind)
    given, members = maker.source(maker.operands[1], kind), maker.source(maker.operands[2], "u32")

    def step(block: Block) -> None:
        if not block.together(members(block)):
            return
        values, result = given(block), np.zeros(block.size, DTYPES[kind])
        for warp in range(0, block.size, WARP):
            lanes = np.flatnonzero(block.active[warp : warp + WARP]) + warp
            if len(lanes):
                result[warp : warp + WARP] = reduce.reduce(values[lanes], dtype=DTYPES[kind])
        put(block, result)

    return step


@instruction("match")
def _match(maker: Maker) -> Step:
    """Which lanes have the value of this one (any), or have all the same (all)?"""
    _, how, _, kind = maker.op
    first, second = maker.pair(maker.operands[0])
    put, put_same = maker.target(first, "b32"), maker.target(second, "pred")
    given, members = maker.source(maker.operands[1], unsigned(kind)), maker.source(maker.operands[2], "u32")

    def step(block: Block) -> None:
        if not block.together(members(block)):
            return
        values = given(block).reshape(-1, WARP)
        here = block.active.reshape(-1, WARP)
        same = (values[:, :, None] == values[:, None, :]) & here[:, None, :]
        masks = (same * (1 << np.arange(WARP))).sum(axis=2).reshape(-1).astype(np.uint32)
        if how == "all":
            every = masks == _by_warp(block.active)
            # Only if every lane says so.
            every = np.repeat((every.reshape(-1, WARP) | ~here).all(axis=1), WARP)
            put_same(block, every)
            masks = np.where(every, masks, np.uint32(0))
        put(block, masks)

    return step


@instruction("elect")
def _elect(maker: Maker) -> Step:
    """The lowest lane of those that take part."""
    first, second = maker.pair(maker.operands[0])
    put, put_chosen = maker.put_bits(first, "b32"), maker.target(second, "pred")
    members = maker.source(maker.operands[1], "u32")

    def step(block: Block) -> None:
        if not block.together(members(block)):
            return
        here = _by_warp(block.active)
        lowest = np.bitwise_count((here & -here.astype(np.int64)) - 1).astype(np.uint32)
        put(block, lowest)
        put_chosen(block, lowest == block.lane % WARP)

    return step


@instruction("alloca", "stacksave", "stackrestore")
def _stack(maker: Maker) -> Step:
    """Each lane's own memory, above what its functions have."""
    name = maker.op[0]
    if name == "stackrestore":
        value = maker.source(maker.operands[0], "u64")

        def restore(block: Block) -> None:
            block.allocated = np.where(block.active, value(block), block.allocated)

        return restore
    put = maker.target(maker.operands[0], "u64")
    if name == "stacksave":
        return lambda block: put(block, block.allocated)
    size = maker.source(maker.operands[1], "u64")
    align = maker.source(maker.operands[2], "u64") if len(maker.operands) > 2 else None

    def step(block: Block) -> None:
        unit = align(block) if align else np.full(block.size, 8, np.uint64)
        begin = (block.allocated + unit - np.uint64(1)) // unit * unit
        after = begin + size(block)
        if int(after[block.active].max()) > block.local.shape[1]:
            raise EmulationError(f"more than {block.local.shape[1]} bytes of a thread's local memory")
        put(block, begin)
        block.allocated = np.where(block.active, after, block.allocated)

    return step
