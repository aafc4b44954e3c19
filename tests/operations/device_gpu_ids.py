"""Ids and sizes of threads, blocks, clusters and subgroups, and what bounds them; gpu.barrier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from device_values import BLOCKS, THREAD, load, mapped, module, store, values

from offload.runtime import Library
from operations import Case

AXES = "xyz"
WARP = 32


def _per_axis(op: str, bound: str = "", attributes: str = "") -> str:
    body = "\n".join(
        f"%c{i} = arith.constant {i} : index\n%i{i} = gpu.{op} {axis}{bound}\n"
        f"memref.store %i{i}, %out[%all, %c{i}] : memref<?x3xindex>"
        for i, axis in enumerate(AXES)
    )
    # Blocks in order, x fastest.
    place = """
      %by = gpu.block_id y
      %bz = gpu.block_id z
      %gx = gpu.grid_dim x
      %gy = gpu.grid_dim y
      %q0 = arith.muli %bz, %gy : index
      %q1 = arith.addi %q0, %by : index
      %q2 = arith.muli %q1, %gx : index
      %q3 = arith.addi %q2, %bx : index
      %q4 = arith.muli %q3, %threads : index
      %all = arith.addi %q4, %thread : index
    """
    return module(f"gpu.func @k(%out: memref<?x3xindex>) kernel {attributes} {{\n{THREAD}{place}{body}\ngpu.return\n}}")


Sizes = tuple[int, int, int]
LAUNCHES: Sequence[tuple[Sizes, Sizes]] = [
    ((1, 1, 1), (1, 1, 1)),
    ((3, 2, 4), (5, 3, 2)),
    ((7, 1, 1), (1024, 1, 1)),
    ((1, 5, 2), (1, 1, 64)),
]


def _is(
    expected: Callable[[Any, Any, Sizes, Sizes], Any], launches: Sequence[tuple[Sizes, Sizes]] = LAUNCHES
) -> Callable[[Library], None]:
    """``expected(block id, thread id, grid, block)`` along one axis, for arrays of ids."""

    def run(library: Library) -> None:
        for grid, block in launches:
            out = np.full((int(np.prod(grid)) * int(np.prod(block)), 3), -1, np.int64)
            library.kernels.k[grid, block](out)
            b, t = np.divmod(np.arange(len(out)), int(np.prod(block)))
            blocks = np.stack(np.unravel_index(b, grid[::-1]))[::-1]
            threads = np.stack(np.unravel_index(t, block[::-1]))[::-1]
            for axis in range(3):
                want = expected(blocks[axis], threads[axis], grid[axis], block[axis])  # type: ignore[arg-type]
                np.testing.assert_array_equal(out[:, axis], want + 0 * b, f"{grid} {block} {axis}")

    return run


IDS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "thread_id": lambda b, t, grid, block: t,
    "block_id": lambda b, t, grid, block: b,
    "block_dim": lambda b, t, grid, block: block,
    "grid_dim": lambda b, t, grid, block: grid,
    "global_id": lambda b, t, grid, block: b * block + t,
    "cluster_id": lambda b, t, grid, block: b,
    "cluster_block_id": lambda b, t, grid, block: 0 * b,
    "cluster_dim": lambda b, t, grid, block: grid,
    "cluster_dim_blocks": lambda b, t, grid, block: 0 * b + 1,
}

LANES = module(f"""
  gpu.func @k(%out: memref<?x4xindex>) kernel {{
    {THREAD}
    %lane = gpu.lane_id BOUND
    %subgroup = gpu.subgroup_id BOUND : index
    %count = gpu.num_subgroups BOUND : index
    %size = gpu.subgroup_size BOUND : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    memref.store %lane, %out[%at, %c0] : memref<?x4xindex>
    memref.store %subgroup, %out[%at, %c1] : memref<?x4xindex>
    memref.store %count, %out[%at, %c2] : memref<?x4xindex>
    memref.store %size, %out[%at, %c3] : memref<?x4xindex>
    gpu.return
  }}""")


def _lanes(library: Library) -> None:
    for block in BLOCKS:
        threads = int(np.prod(block))
        out = np.full((3 * threads, 4), -1, np.int64)
        library.kernels.k[3, block](out)
        thread = np.tile(np.arange(threads), 3)
        count = 0 * thread + (threads + WARP - 1) // WARP
        want = [thread % WARP, thread // WARP, count, 0 * thread + WARP]
        np.testing.assert_array_equal(out, np.stack(want, axis=1), str(block))


# Each thread passes its value to the next of the block, as often as its block says.
BARRIER = module(f"""
  gpu.func @k(%x: memref<?xi32>, %out: memref<?xi32>)
      workgroup(%w: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {{
    {THREAD}{load("i32")}
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = arith.addi %thread, %one : index
    %next = arith.remui %n, %threads : index
    %r = scf.for %i = %zero to %bx step %one iter_args(%a = %v) -> i32 {{
      memref.store %a, %w[%thread] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %b = memref.load %w[%next] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %b : i32
    }}
    {store("i32")}
    gpu.return
  }}""")


def _passed_on(library: Library) -> None:
    for block in BLOCKS:
        x = values("i32", "add", (5, int(np.prod(block))))
        out = np.zeros_like(x)
        library.kernels.k[5, block](x.reshape(-1), out.reshape(-1))
        np.testing.assert_array_equal(out, np.stack([np.roll(row, -i) for i, row in enumerate(x)]), str(block))


# Half of the threads count to different numbers between two barriers.
DIVERGENT = module(mapped("k", "i32", """
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %half = arith.remui %thread, %two : index
  %odd = arith.cmpi eq, %half, %one : index
  gpu.barrier
  %r = scf.if %odd -> i32 {
    %s = scf.for %i = %zero to %thread step %one iter_args(%a = %v) -> i32 {
      %k = arith.index_cast %i : index to i32
      %b = arith.addi %a, %k : i32
      scf.yield %b : i32
    }
    scf.yield %s : i32
  } else {
    scf.yield %v : i32
  }
  gpu.barrier"""))  # fmt: skip


def _counted(library: Library) -> None:
    for block in BLOCKS:
        x = values("i16", "add", (3, int(np.prod(block)))).astype(np.int32)
        out = np.zeros_like(x)
        library.kernels.k[3, block](x.reshape(-1), out.reshape(-1))
        thread = np.arange(x.shape[1])
        np.testing.assert_array_equal(out, x + np.where(thread % 2, thread * (thread - 1) // 2, 0), str(block))


KNOWN = "attributes {known_block_size = array<i32: 5, 3, 2>, known_grid_size = array<i32: 3, 2, 4>}"
_OTHER = {"nvvm": "sm_75", "rocdl": "gfx1100"}
CASES = [
    *(Case(f"gpu.{op}", "x y z", _per_axis(op), _is(expected)) for op, expected in IDS.items()),
    *(
        Case(f"gpu.{op}", "upper_bound", _per_axis(op, " upper_bound 2048"), _is(expected))
        for op, expected in IDS.items()
    ),
    *(
        Case(
            f"gpu.{op}",
            "known_block_size, known_grid_size",
            _per_axis(op, attributes=KNOWN),
            _is(IDS[op], [((3, 2, 4), (5, 3, 2))]),
        )
        for op in ("thread_id", "block_id", "block_dim", "grid_dim", "global_id")
    ),
    *(
        Case(f"gpu.{op}", "chips without clusters", _per_axis(op), _is(IDS[op]), chips=_OTHER)
        for op in ("cluster_id", "cluster_block_id", "cluster_dim", "cluster_dim_blocks")
    ),
    Case("gpu.lane_id, subgroup_id, num_subgroups, subgroup_size", "", LANES.replace("BOUND", ""), _lanes),
    Case(
        "gpu.lane_id, subgroup_id, num_subgroups, subgroup_size",
        "upper_bound",
        LANES.replace("BOUND", "upper_bound 128"),
        _lanes,
    ),
    Case(
        "gpu.lane_id, subgroup_id, num_subgroups, subgroup_size",
        "wave32",
        LANES.replace("BOUND", ""),
        _lanes,
        chips=_OTHER,
    ),
    Case("gpu.barrier", "in loops of other lengths in each block", BARRIER, _passed_on),
    Case("gpu.barrier", "around branches and loops of each thread's own", DIVERGENT, _counted),
]
