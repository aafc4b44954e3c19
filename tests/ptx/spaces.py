"""State spaces: the process's memory, a block's shared memory, each lane's own, and generic addresses of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from emulator.errors import EmulationError
from emulator.memory import PRIVATE_BASE, SHARED_BASE, WINDOW

from ptx.block import WARP, Block

Array = Any

RANK_SHIFT = 24
"""Addresses of other blocks' shared memory: 1 + the block's rank in its cluster above these bits."""


def check_aligned(addresses: Array, size: int, what: str) -> None:
    """Hardware has no access that is not aligned to its size."""
    wrong = addresses[addresses % np.uint64(size) != 0]
    if len(wrong):
        raise EmulationError(f"{what} of {size} bytes at {int(wrong[0]):#x}, which is not a multiple of {size}")


def read(block: Block, space: str, lanes: Array, addresses: Array, size: int, *, ordered: bool = False) -> Array:
    """``size`` bytes at an address for each of the lanes: bytes [lane, byte].

    ``ordered``: other threads may access the same bytes meanwhile.
    """
    result = np.empty((len(lanes), size), np.uint8)
    for chosen, where, places in _parts(block, space, lanes, addresses, size, "a read"):
        if where is block.shared and block.watch.on and not ordered:
            block.watch.read(lanes[chosen] // WARP, places)
        result[chosen] = block.launch.memory.gather(places, size) if where is None else where[places]
    return result


def write(block: Block, space: str, lanes: Array, addresses: Array, data: Array, *, ordered: bool = False) -> None:
    """Bytes [lane, byte] to an address for each of the lanes; of several writes to one place the last stays."""
    for chosen, where, places in _parts(block, space, lanes, addresses, data.shape[1], "a write"):
        if where is None:
            block.launch.memory.scatter(places, data[chosen])
            continue
        if where is block.shared and block.watch.on and not ordered:
            block.watch.write(lanes[chosen] // WARP, places, data[chosen], where[places])
        where[places] = data[chosen]


def owner_of(block: Block, address: int) -> tuple[Block, int]:
    """The block whose shared memory an address is of, and the offset."""
    rank = address >> RANK_SHIFT
    owner = block if rank == 0 else block.launch.in_cluster(block, rank - 1)
    return owner, address & ((1 << RANK_SHIFT) - 1)


def _parts(
    block: Block, space: str, lanes: Array, addresses: Array, size: int, what: str
) -> list[tuple[Array, Array | None, Any]]:
    """Which lanes access what: bytes of an array at places, or the process's memory at addresses."""
    everything = np.arange(len(lanes))
    if space == "":
        base = addresses & ~np.uint64(WINDOW - 1)
        found: list[tuple[Array, Array | None, Any]] = []
        for name, here in (
            ("shared", base == SHARED_BASE),
            ("local", base == PRIVATE_BASE),
            ("global", (base != SHARED_BASE) & (base != PRIVATE_BASE)),
        ):
            chosen = everything[here]
            if len(chosen):
                inside = addresses[chosen] & np.uint64(WINDOW - 1) if name != "global" else addresses[chosen]
                parts = _parts(block, name, lanes[chosen], inside, size, what)
                found += [(chosen[part], where, places) for part, where, places in parts]
        return found
    if space == "local":
        _check(addresses, size, block.local.shape[1], what, "a thread's local memory")
        return [(everything, block.local, (lanes[:, None], _places(addresses, size)))]
    if space == "shared":
        found = []
        ranks = addresses >> np.uint64(RANK_SHIFT)
        for rank in np.unique(ranks).tolist():
            chosen = everything[ranks == rank]
            owner, _ = owner_of(block, rank << RANK_SHIFT)
            inside = addresses[chosen] & np.uint64((1 << RANK_SHIFT) - 1)
            _check(inside, size, len(owner.shared), what, "shared memory")
            found.append((chosen, owner.shared, _places(inside, size)))
        return found
    return [(everything, None, addresses)]


def _check(addresses: Array, size: int, limit: int, what: str, where: str) -> None:
    if len(addresses) and int(addresses.max()) + size > limit:
        raise EmulationError(f"{what} of {size} bytes at {int(addresses.max()):#x} of {limit} bytes of {where}")


def _places(addresses: Array, size: int) -> Array:
    return addresses.astype(np.int64)[:, None] + np.arange(size)
