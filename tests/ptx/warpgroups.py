"""Products of warpgroups (wgmma): 64 rows by 4 warps, operands in shared memory by descriptors, or in registers.

How operands lie in shared memory is as in the ISA's *Asynchronous warpgroup-level matrix shared memory layout*.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import WARP, Block
from ptx.kinds import DTYPES, UNSIGNED
from ptx.maker import Maker, Step
from ptx.matrix import BITS, multiplied, packed, places_a, registers, results, unpacked
from ptx.spaces import read
from ptx.syntax import Number, Vector
from ptx.table import instruction

Array = Any

GROUP_LANES = 4 * WARP
_SWIZZLED = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a row, by the descriptor's code


@instruction("wgmma")
def _warpgroup(maker: Maker) -> Step:
    if maker.op[1] in ("fence", "commit_group", "wait_group"):
        return lambda block: _arrived(block) and None
    if maker.op[1] != "mma_async" or "sp" in maker.op:
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")
    shape = next(filter(None, (re.fullmatch(r"m64n(\d+)k(\d+)", word) for word in maker.op)))
    n, k = map(int, shape.groups())
    kind_d, kind_a, kind_b = (word for word in maker.op if word in BITS)
    sums, left, right, keeps, *modes = maker.operands
    signs = [int(mode.text) for mode in modes[:2] if isinstance(mode, Number)]
    turns = [int(mode.text) for mode in modes[2:] if isinstance(mode, Number)]
    in_registers = isinstance(left, Vector)
    if in_registers:
        turns.insert(0, 0)
    turns += [0, 0]
    a = registers(maker, left, kind_a) if in_registers else maker.source(left, "u64")
    b, scale = maker.source(right, "u64"), maker.source(keeps, "pred")
    given, put = registers(maker, sums, kind_d), results(maker, sums, kind_d)
    signs += [1, 1]

    def step(block: Block) -> None:
        if not _arrived(block):
            return
        before = unpacked(np.ascontiguousarray(given(block)), kind_d)
        before = np.where(scale(block)[:, None], before, DTYPES[kind_d].type(0))
        result = np.zeros_like(before, dtype=DTYPES[kind_d])
        for first in range(0, block.size, GROUP_LANES):
            if not block.active[first]:
                continue
            y = _from_memory(block, first, b(block), (n, k), kind_b, bool(turns[1])).T
            if in_registers:
                x = _from_registers(unpacked(np.ascontiguousarray(a(block)[first : first + GROUP_LANES]), kind_a), k)
            else:
                x = _from_memory(block, first, a(block), (64, k), kind_a, bool(turns[0]))
            place = slice(first, first + GROUP_LANES)
            rows, columns = _places(before.shape[1])
            c = np.zeros((64, n), before.dtype)
            c[rows, columns] = before[place]
            product = multiplied(x * x.dtype.type(signs[0]), y * y.dtype.type(signs[1]), c, kind_d, limited=False)
            result[place] = product[rows, columns]
        put(block, packed(result, kind_d))

    return step


def _places(count: int) -> tuple[Array, Array]:
    """Rows and columns of sums [lane of the group, index]."""
    lane, index = np.arange(GROUP_LANES)[:, None], np.arange(count)
    rows = 16 * (lane // WARP) + lane % WARP // 4 + 8 * (index >> 1 & 1)
    return rows, 8 * (index >> 2) + 2 * (lane % 4) + (index & 1)


def _from_registers(elements: Array, k: int) -> Array:
    rows, columns = places_a({8: "tf32", 16: "f16", 32: "s8"}[k], elements.shape[1])
    matrix = np.zeros((64, k), elements.dtype)
    for warp in range(4):
        matrix[rows + 16 * warp, columns] = elements[WARP * warp : WARP * (warp + 1)]
    return matrix


def _from_memory(
    block: Block, first: int, descriptors: Array, shape: tuple[int, int], kind: str, turned: bool
) -> Array:
    """Rows (of the left operand, or columns of the right one) by what is summed over."""
    mine = descriptors[first : first + GROUP_LANES]
    if (mine != mine[0]).any():
        raise EmulationError("lanes of a warpgroup with different descriptors")
    bits = int(mine[0])
    start, lead, stride = ((bits >> place & 0x3FFF) << 4 for place in (0, 16, 32))
    width = _SWIZZLED[bits >> 62]
    if bits >> 49 & 7:
        raise EmulationError("a descriptor with a base offset")
    size = BITS[kind] // 8
    row, column = np.indices(shape)
    if turned:
        row = row * size
        if width == 16:
            places = row % 16 + row // 16 * stride + column % 8 * 16 + column // 8 * lead
        else:
            places = row % width + row // width * lead + column % 8 * width + column // 8 * stride
    else:
        column = column * size
        places = row % 8 * width + row // 8 * stride
        places = places + (column % 16 + column // 16 * lead if width == 16 else column)
    places = start + places
    places ^= (places >> 7 & (width // 16 - 1)) << 4
    flat = places.reshape(-1).astype(np.uint64)
    data = read(block, "shared", np.full(len(flat), first), flat, size)
    words = np.ascontiguousarray(data).view(UNSIGNED[size]).reshape(shape)
    return unpacked(words.view(np.uint32) if size < 4 else words, kind).reshape(shape)


def _arrived(block: Block) -> bool:
    """Waits for all lanes of the warpgroups."""
    if block.size % GROUP_LANES:
        raise EmulationError(f"a warpgroup of a block of {block.size // WARP} warps")
    groups = (block.active | ~block.alive).reshape(-1, GROUP_LANES)
    waiting = np.repeat(~groups.all(axis=1), GROUP_LANES) & block.active
    if waiting.any():
        block.parked[block.pc - 1] = waiting | block.parked.get(block.pc - 1, False)
        block.leave(waiting)
    block.completed += block.count > 0
    return block.count > 0
