"""Blocks of one row of the grid run together on the CPU where nothing orders their threads: rows of arrays are gone
through from end to end, whatever part of the grid a processor's thread takes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import emit_text, on_host

# Each cell of %x gets its thread's number in the grid; `apart` asks for ids by themselves, `place` for their sum alone.
KERNEL = """module attributes {{gpu.container_module}} {{ gpu.module @m {{
gpu.func @cells(%x: memref<?x?x?xi32>) kernel {known} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %nz = memref.dim %x, %c0 : memref<?x?x?xi32>
  %ny = memref.dim %x, %c1 : memref<?x?x?xi32>
  %nx = memref.dim %x, %c2 : memref<?x?x?xi32>
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %bz = gpu.block_id z
  %dx = {dx}
  %dy = gpu.block_dim y
  %dz = gpu.block_dim z
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %tz = gpu.thread_id z
  %sx = arith.muli %bx, %dx : index
  %sy = arith.muli %by, %dy : index
  %sz = arith.muli %bz, %dz : index
  %i = arith.addi %sx, %tx : index
  %j = arith.addi %sy, %ty : index
  %k = arith.addi %sz, %tz : index
  %in_x = arith.cmpi ult, %i, %nx : index
  %in_y = arith.cmpi ult, %j, %ny : index
  %in_z = arith.cmpi ult, %k, %nz : index
  %in_xy = arith.andi %in_x, %in_y : i1
  %inside = arith.andi %in_xy, %in_z : i1
  scf.if %inside {{
    {value}
    memref.store %n, %x[%k, %j, %i] : memref<?x?x?xi32>
  }}
  gpu.return
}} }} }}"""
PLACE = """%rows = arith.muli %k, %ny : index
    %row = arith.addi %rows, %j : index
    %begin = arith.muli %row, %nx : index
    %at = arith.addi %begin, %i : index
    %{result} = arith.index_cast %at : index to i32"""
APART = (
    PLACE.format(result="m")
    + """
    %b = arith.index_cast %bx : index to i32
    %t = arith.index_cast %tx : index to i32
    %c1000 = arith.constant 1000 : i32
    %bt = arith.muli %b, %c1000 : i32
    %s = arith.addi %bt, %t : i32
    %n = arith.addi %m, %s : i32"""
)
VALUES = {"place": PLACE.format(result="n"), "apart": APART}
BLOCKS = [(1, 1, 1), (32, 1, 1), (32, 8, 1), (7, 3, 2), (256, 1, 1), (16, 16, 4)]
SHAPES = [(1, 1, 1), (1, 1, 100_000), (3, 17, 301), (2, 130, 40), (1, 2000, 3)]


def source(value: str, known: tuple[int, int, int] | None) -> str:
    return KERNEL.format(
        value=value,
        dx=f"arith.constant {known[0]} : index" if known else "gpu.block_dim x",
        known=f"attributes {{known_block_size = array<i32: {str(known)[1:-1]}>}}" if known else "",
    )


@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("ids", VALUES)
def test_every_thread_of_the_grid_runs_once(ids: str, block: tuple[int, int, int], knows: bool) -> None:
    kernel = on_host(source(VALUES[ids], block if knows else None)).kernels["cells"]
    for shape in SHAPES:
        x = np.full(shape, -1, np.int32)
        grid = tuple(-(-n // size) for n, size in zip(reversed(shape), block, strict=True))
        kernel[grid, block](x)
        expected = np.arange(x.size, dtype=np.int32).reshape(shape)
        if ids == "apart":
            at = np.arange(shape[2], dtype=np.int32)
            expected = expected + at // block[0] * 1000 + at % block[0]
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("ids", VALUES)
def test_threads_of_a_row_of_blocks_are_one_loop(ids: str) -> None:
    """Where ids are taken apart, each block's 32 are a loop of their own."""
    text = emit_text(source(VALUES[ids], (32, 8, 1)), "llvm", ["host"])
    assert bool(re.search(r"@llvm\.umin\.i64\(i64 %\d+, i64 32\)", text)) == (ids == "apart"), text


def test_blocks_with_memory_of_their_own_run_one_after_the_other() -> None:
    """Threads of a block may leave something in workgroup memory for those behind them, by atomic operations."""
    text = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @tickets(%x: memref<?x?xi32>) workgroup(%next: memref<1xi32, #gpu.address_space<workgroup>>) kernel
    attributes {known_block_size = array<i32: 4, 4, 1>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %block = gpu.block_id x
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %row = arith.muli %ty, %c4 : index
  %t = arith.addi %row, %tx : index
  %is_first = arith.cmpi eq, %t, %c0 : index
  scf.if %is_first {
    %was = memref.atomic_rmw assign %zero, %next[%c0] : (i32, memref<1xi32, #gpu.address_space<workgroup>>) -> i32
  }
  %ticket = memref.atomic_rmw addi %one, %next[%c0] : (i32, memref<1xi32, #gpu.address_space<workgroup>>) -> i32
  memref.store %ticket, %x[%block, %t] : memref<?x?xi32>
  gpu.return
} } }"""
    x = np.full((9, 16), -1, np.int32)
    on_host(text).kernels["tickets"][9, (4, 4)](x)
    np.testing.assert_array_equal(x, np.tile(np.arange(16, dtype=np.int32), (9, 1)))
