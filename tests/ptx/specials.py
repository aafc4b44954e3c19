"""Special registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import WARP, Block

Array = Any


def special(name: str) -> Callable[[Block], Array]:
    """The value of a special register, for all lanes or for each."""
    base, _, axis = name.removeprefix("%").partition(".")
    if axis in ("x", "y", "z") and base in _AXES:
        number = "xyz".index(axis)
        return lambda block: _AXES[base](block, number)
    if name.removeprefix("%") in _PLAIN:
        return _PLAIN[name.removeprefix("%")]
    raise EmulationError(f"no special register {name}")


def _thread(block: Block, axis: int) -> Array:
    x, y, _ = block.launch.block
    return (block.lane % x, block.lane // x % y, block.lane // (x * y))[axis]


def _in_warp(block: Block) -> Array:
    return block.lane % WARP


def _mask(compare: Callable[[Array, Array], Array]) -> Callable[[Block], Array]:
    def found(block: Block) -> Array:
        other = np.arange(WARP)
        return (compare(other, _in_warp(block)[:, None]) * (1 << other)).sum(axis=1)

    return found


def _cluster_index(block: Block, axis: int) -> int:
    return block.index[axis] // block.launch.cluster[axis]


_AXES: dict[str, Callable[[Block, int], Array]] = {
    "tid": _thread,
    "ntid": lambda block, axis: block.launch.block[axis],
    "ctaid": lambda block, axis: block.index[axis],
    "nctaid": lambda block, axis: block.launch.grid[axis],
    "clusterid": _cluster_index,
    "nclusterid": lambda block, axis: block.launch.grid[axis] // block.launch.cluster[axis],
    "cluster_ctaid": lambda block, axis: block.index[axis] % block.launch.cluster[axis],
    "cluster_nctaid": lambda block, axis: block.launch.cluster[axis],
}
_PLAIN: dict[str, Callable[[Block], Array]] = {
    "laneid": _in_warp,
    "warpid": lambda block: block.lane // WARP,
    "nwarpid": lambda block: block.size // WARP,
    "smid": lambda block: 0,
    "nsmid": lambda block: 1,
    "gridid": lambda block: 0,
    "clock": lambda block: block.executed & 0xFFFFFFFF,
    "clock64": lambda block: block.executed,
    "globaltimer": lambda block: block.executed,
    "lanemask_eq": _mask(np.equal),
    "lanemask_lt": _mask(np.less),
    "lanemask_le": _mask(np.less_equal),
    "lanemask_gt": _mask(np.greater),
    "lanemask_ge": _mask(np.greater_equal),
    "dynamic_smem_size": lambda block: block.launch.dynamic,
    "total_smem_size": lambda block: block.launch.shared_size,
    "cluster_ctarank": lambda block: block.launch.rank(block.index),
    "cluster_nctarank": lambda block: int(np.prod(block.launch.cluster)),
    "is_explicit_cluster": lambda block: int(np.prod(block.launch.cluster)) > 1,
}
