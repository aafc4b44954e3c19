"""Arrays that are larger than 32-bit numbers or a grid's y and z reach. Untouched pages take no memory."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host

TRANSFER = """
func.func @host(%x: memref<?xi8>, %y: memref<4xi8>) {
  %c0 = arith.constant 0 : index
  %padding = arith.constant 42 : i8
  %v = vector.transfer_read %x[%c0], %padding : memref<?xi8>, vector<4xi8>
  vector.store %v, %y[%c0] : memref<4xi8>, vector<4xi8>
  return
}
func.func @kernel(%x: memref<?xi8>, %y: memref<4xi8>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %padding = arith.constant 42 : i8
    %v = vector.transfer_read %x[%c0], %padding : memref<?xi8>, vector<4xi8>
    vector.store %v, %y[%c0] : memref<4xi8>, vector<4xi8>
    gpu.terminator
  }
  return
}
"""


@pytest.mark.parametrize("name", ["host", "kernel"])
@pytest.mark.parametrize(("size", "expected"), [(2, [7, 7, 42, 42]), (2**31 + 16, [7] * 4), (2**32 + 1, [7] * 4)])
def test_vectors_at_the_edge(name: str, size: int, expected: list[int]) -> None:
    """MLIR's default compares the places of a partly filled vector in 32 bits."""
    x, y = np.zeros(size, np.int8), np.zeros(4, np.int8)
    x[:4] = 7
    getattr(on_host(TRANSFER), name)(x, y)
    np.testing.assert_array_equal(y, expected)


LOOPS = """
func.func @fill(%x: memref<?x?xf32>, %v: f32) {
  linalg.fill ins(%v : f32) outs(%x : memref<?x?xf32>)
  return
}
func.func @indices(%x: memref<?x?x?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.dim %x, %c0 : memref<?x?x?xi32>
  %b = memref.dim %x, %c1 : memref<?x?x?xi32>
  %c = memref.dim %x, %c2 : memref<?x?x?xi32>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%a, %b, %c) step (%c1, %c1, %c1) {
    %i32 = arith.index_cast %i : index to i32
    %j32 = arith.index_cast %j : index to i32
    %k32 = arith.index_cast %k : index to i32
    %thousand = arith.constant 1000 : i32
    %p = arith.muli %i32, %thousand : i32
    %q = arith.xori %p, %j32 : i32
    %r = arith.muli %q, %thousand : i32
    %s = arith.xori %r, %k32 : i32
    memref.store %s, %x[%i, %j, %k] : memref<?x?x?xi32>
  }
  return
}
"""


@pytest.mark.parametrize("shape", [(1_000_000, 3), (3, 1_000_000), (0, 5), (5, 0), (1, 1), (33, 70)])
def test_loops_over_tall_and_wide_arrays(shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.float32)
    on_host(LOOPS).fill(x, 2)
    np.testing.assert_array_equal(x, 2)


@pytest.mark.parametrize("shape", [(100_000, 3, 2), (2, 8 * 65_536, 3), (7, 9, 40), (0, 2, 2), (2, 0, 2), (2, 2, 0)])
def test_loops_of_three_dimensions(shape: tuple[int, int, int]) -> None:
    x = np.zeros(shape, np.int32)
    on_host(LOOPS).indices(x)
    i, j, k = np.indices(shape, dtype=np.int32)
    np.testing.assert_array_equal(x, ((1000 * i) ^ j) * np.int32(1000) ^ k)


def test_known_sizes_that_fit_keep_their_grid() -> None:
    """Divisions are for loops that may need them."""
    for rows, divides in ((64, False), (8 * 65_535, False), (8 * 65_536, True)):
        source = LOOPS.split("func.func @indices")[0].replace("?x?x", f"{rows}x256x")
        (kernels,) = emit(source, "kernels")
        assert (b"divui" in kernels.data) == divides
    assert len(emit(LOOPS, "object", ALL_TARGETS)) == 6
