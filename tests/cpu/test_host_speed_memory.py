"""Kernels use memory in whole pieces on the CPU: threads of a row step through their loops together, and where a block
is in the grid is counted, not divided out anew."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiling import ROOT, emit_text

import offload

# Each row of %x, to which %bias is added, by the threads of one block, which go through it in steps of %width.
ROWS = """module attributes {{gpu.container_module}} {{ gpu.module @m {{
gpu.func @rows(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %bias: f32) kernel
    attributes {{known_block_size = array<i32: {width}, 1, 1>}} {{
  %c1 = arith.constant 1 : index
  %width = arith.constant {width} : index
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %row = gpu.block_id x
  %t = gpu.thread_id x
  scf.for %j = %t to %n step %width {{
    %v = memref.load %x[%row, %j] : memref<?x?xf32>
    %r = arith.addf %v, %bias : f32
    memref.store %r, %y[%row, %j] : memref<?x?xf32>
  }}
  gpu.return
}} }} }}"""

IDS = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @ids(%x: memref<?x?x?x3xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %bz = gpu.block_id z
  %ix = arith.index_cast %bx : index to i32
  %iy = arith.index_cast %by : index to i32
  %iz = arith.index_cast %bz : index to i32
  memref.store %ix, %x[%bz, %by, %bx, %c0] : memref<?x?x?x3xi32>
  memref.store %iy, %x[%bz, %by, %bx, %c1] : memref<?x?x?x3xi32>
  memref.store %iz, %x[%bz, %by, %bx, %c2] : memref<?x?x?x3xi32>
  gpu.return
} } }"""

TRANSPOSE = ROOT / "bench/host/programs/transpose.mlir"


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names levels of x86-64")
def test_rows_are_stepped_through_by_all_threads_together(level: str) -> None:
    """Vectors of all 256 threads before the next step's: what is kept of a row's length is where the last of them
    would leave it, and no vector is further apart from the one before than it is long."""
    text = emit_text(ROWS.format(width=256), "llvm", [f"host:{level}"])
    assert re.search(r"@llvm\.sadd\.sat\.i64\(i64 %\d+, i64 -255\)", text), text
    step = re.search(r"^vector.ph\d*:.*?= phi i64 .*?^$", text, re.MULTILINE | re.DOTALL)
    lanes = int(re.search(r"load <(\d+) x float>", step[0])[1])  # type: ignore[index]
    offsets = [int(offset) for offset in re.findall(r"or disjoint i64 %\S+, (\d+)$", step[0], re.MULTILINE)]  # type: ignore[index]
    assert offsets == list(range(lanes, 256, lanes)), text


@pytest.mark.parametrize("width", [4, 32, 48, 64, 96, 256, 1000, 1024])
@pytest.mark.parametrize("n", [0, 1, 31, 33, 255, 256, 257, 1000, 2500])
def test_rows_of_any_length(width: int, n: int) -> None:
    library = offload.compile(ROWS.format(width=width), targets=["host"])
    x = np.arange(5 * n, dtype=np.float32).reshape(5, n)
    y = np.full((6, n), -1, np.float32)
    library.kernels.rows[5, width](x, y[:5], 0.5)
    np.testing.assert_array_equal(y[:5], x + np.float32(0.5))
    assert (y[5] == -1).all()


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 5, 3), (1, 300, 2), (2, 1, 300), (1000, 1, 1), (3, 700, 7)])
def test_ids_of_blocks(grid: tuple[int, int, int]) -> None:
    """Whatever part of the grid a thread of the pool begins with."""
    ids = np.full((*reversed(grid), 3), -1, np.int32)
    offload.compile(IDS, targets=["host"]).kernels.ids[grid, 1](ids)
    z, y, x = np.indices(tuple(reversed(grid)))
    np.testing.assert_array_equal(ids, np.stack([x, y, z], axis=-1))


def test_a_kernel_divides_once_for_all_its_blocks() -> None:
    text = emit_text(ROWS.format(width=256), "llvm", ["host"])
    before, blocks = re.split(r"^block:", text, maxsplit=1, flags=re.MULTILINE)
    assert re.search(r"\burem\b", before), text
    assert not re.search(r"\b[us](div|rem) i", blocks), text


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
def test_tiles_are_moved_by_whole_rows() -> None:
    """Not a part of each of four rows at a time, under masks."""
    text = emit_text(TRANSPOSE.read_text(), "isa", ["host:x86-64-v4"])
    assert re.search(r"\tvmovups\t%[yz]mm\d+, \(", text), text
    assert not re.search(r"\tvmovup[sd]\t%[xyz]mm\d+, .*\{%k", text), text


@pytest.mark.parametrize("shape", [(1, 1), (31, 33), (32, 32), (40, 100), (129, 64), (200, 31)])
def test_tiles_of_any_shape(shape: tuple[int, int]) -> None:
    library = offload.compile(TRANSPOSE, targets=["host"])
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.zeros(shape[::-1], np.float32)
    library.transpose(x, out)
    np.testing.assert_array_equal(out, x.T)


# Each thread adds up and writes %count elements in a row, fewer at the data's end.
RUNS = """module attributes {{gpu.container_module}} {{ gpu.module @m {{
gpu.func @runs(%x: memref<?xi32>, %y: memref<?xi32>) kernel {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {step} : index
  %count = arith.constant {count} : index
  %zero = arith.constant 0 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %b = gpu.block_id x
  %d = gpu.block_dim x
  %t = gpu.thread_id x
  %p = arith.muli %b, %d : index
  %i = arith.addi %p, %t : index
  %first = arith.muli %i, %count : index
  %past = arith.addi %first, %count : index
  %end = arith.min{sign}i %past, %n : index
  %sum = scf.for %j = %first to %end step %step iter_args(%acc = %zero) -> i32 {{
    %v = memref.load %x[%j] : memref<?xi32>
    %next = arith.addi %acc, %v : i32
    memref.store %next, %y[%j] : memref<?xi32>
    scf.yield %next : i32
  }}
  gpu.return
}} }} }}"""


@pytest.mark.parametrize("sign", ["u", "s"])
@pytest.mark.parametrize(("count", "step"), [(8, 1), (5, 1), (8, 3), (1, 1), (3, 8), (32, 1), (100, 1)])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000, 2048])
def test_runs_of_any_length(count: int, step: int, sign: str, n: int) -> None:
    library = offload.compile(RUNS.format(count=count, step=step, sign=sign), targets=["host"])
    x = np.random.default_rng(n).integers(-99, 99, n, dtype=np.int32)
    y, expected = np.zeros(n + 8, np.int32), np.zeros(n + 8, np.int32)
    for first in range(0, n, count):
        part = slice(first, min(first + count, n), step)
        expected[part] = np.cumsum(x[part])
    library.kernels.runs[2048 // (count * 64) + 1, 64](x, y[:n])
    np.testing.assert_array_equal(y, expected)


def test_a_run_of_known_length_has_no_loop() -> None:
    """Eight loads, sums and stores in a row for the threads that the data's end does not cut short, beside the loop
    for the one that it does."""
    text = emit_text(RUNS.format(count=8, step=1, sign="u"), "llvm", ["host"])
    blocks = re.split(r"^\S+:.*$", text, flags=re.MULTILINE)
    assert [block.count("store i32") for block in blocks if "store i32" in block].count(8) == 1, text
