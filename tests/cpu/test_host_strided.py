"""Threads whose elements lie apart: vectors are put together from single loads and taken apart into single stores,
which processors do faster than gathers and scatters."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from compiling import emit_text, on_host
from cpu_levels import levels_here

KERNEL = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @k(%x: memref<?xTYPE>, %numbers: memref<?xi64>, %y: memref<?xTYPE>, %n: index, %apart: index) kernel {
  %c7 = arith.constant 7 : index
  %c33 = arith.constant 33 : index
  %last = arith.constant 9999 : index
  %b = gpu.block_id x
  %size = gpu.block_dim x
  %t = gpu.thread_id x
  %begin = arith.muli %b, %size : index
  %i = arith.addi %begin, %t : index
  %inside = arith.cmpi ult, %i, %n : index
  scf.if %inside {
    %wide = arith.muli %i, %c33 : index
    %behind = arith.addi %wide, %c7 : index
    %down = arith.subi %last, %behind : index
    %any = arith.muli %i, %apart : index
    %number = memref.load %numbers[%i] : memref<?xi64>
    %random = arith.index_cast %number : i64 to index
    %v = memref.load %x[%FROM] : memref<?xTYPE>
    %w = arith.OPERATION %v, %v : TYPE
    memref.store %w, %y[%TO] : memref<?xTYPE>
  }
  gpu.return
} } }"""
SIZE, N, APART = 10000, 300, 21
PLACES = {
    "i": np.arange(N), "wide": 33 * np.arange(N), "behind": 33 * np.arange(N) + 7, "down": 9992 - 33 * np.arange(N),
    "any": APART * np.arange(N), "random": np.random.default_rng(1).permutation(SIZE)[:N],
}  # fmt: skip
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8}


def source(kind: str, read: str, written: str) -> str:
    operation = "addf" if kind.startswith("f") else "addi"
    text = KERNEL.replace("TYPE", kind).replace("OPERATION", operation)
    return text.replace("FROM", read).replace("TO", written)


@pytest.mark.parametrize("level", levels_here())
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("read", "written"), [(a, b) for a in PLACES for b in PLACES if "i" in (a, b) or a == "wide"])
def test_elements_that_lie_apart(read: str, written: str, kind: str, level: str) -> None:
    x = np.random.default_rng(2).integers(-60, 60, SIZE).astype(TYPES[kind])
    y = np.full(SIZE, 3, TYPES[kind])
    expected = y.copy()
    expected[PLACES[written]] = 2 * x[PLACES[read]]
    library = on_host(source(kind, read, written), target=f"host:{level}")
    library.kernels.k[5, 64](x, PLACES["random"].astype(np.int64), y, N, APART)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads assembly of x86-64")
@pytest.mark.parametrize("kind", ["f32", "f64", "i32"])
def test_only_places_that_data_say_are_gathered(kind: str) -> None:
    """AVX-512, which has both."""

    def count(read: str, written: str) -> tuple[int, int]:
        text = emit_text(source(kind, read, written), "isa", ["host:x86-64-v4"])
        return len(re.findall("gather", text)), len(re.findall("scatter", text))

    for place in ("wide", "behind", "down"):
        assert count(place, place) == (0, 0), place
    gathers, scatters = count("random", "wide")
    assert gathers and not scatters
    gathers, scatters = count("wide", "random")
    assert scatters and not gathers


ROWS = """module attributes {gpu.container_module} { gpu.module @m {
gpu.func @k(%x: memref<?x?xf32, strided<[?, ?], offset: ?>>, %sums: memref<?xf32, strided<[?], offset: ?>>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  %columns = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  %b = gpu.block_id x
  %size = gpu.block_dim x
  %t = gpu.thread_id x
  %begin = arith.muli %b, %size : index
  %i = arith.addi %begin, %t : index
  %inside = arith.cmpi ult, %i, %rows : index
  scf.if %inside {
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %zero) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x?xf32, strided<[?, ?], offset: ?>>
      %next = arith.addf %s, %v : f32
      scf.yield %next : f32
    }
    memref.store %sum, %sums[%i] : memref<?xf32, strided<[?], offset: ?>>
  }
  gpu.return
} } }"""


@pytest.mark.parametrize("level", levels_here())
def test_strides_that_arrays_bring(level: str) -> None:
    """A row per thread: views with steps forwards, backwards, of zero, and turned around."""
    library = on_host(ROWS, target=f"host:{level}")
    whole = np.random.default_rng(3).integers(-9, 9, (400, 90)).astype(np.float32)
    one_row = np.lib.stride_tricks.as_strided(whole[7], (300, 90), (0, 4))
    views = [whole, whole[::3], whole[::-1, ::2], whole.T, whole[:, ::-1][5:, 3:], one_row]
    for view in views:
        sums = np.zeros(2 * len(view), np.float32)[::2]
        library.kernels.k[-(-len(view) // 128), 128](view, sums)
        np.testing.assert_array_equal(sums, view.sum(axis=1))
