"""Products of matrices one of which is the result of a linalg.transpose: few rows read it where it was made from."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text
from emulator.running import running_on

# Heads of attention: a matrix of queries for each, and keys that have the heads inside.
HEADS = """
func.func @scores(%q: tensor<2x{rows}x32xf32>, %k: tensor<?x2x32xf32>, %n: index) -> tensor<2x{rows}x?xf32> {{
  %empty = tensor.empty(%n) : tensor<2x32x?xf32>
  %t = linalg.transpose ins(%k : tensor<?x2x32xf32>) outs(%empty : tensor<2x32x?xf32>) permutation = [1, 2, 0]
  %out = tensor.empty(%n) : tensor<2x{rows}x?xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<2x{rows}x?xf32>) -> tensor<2x{rows}x?xf32>
  %r = linalg.batch_matmul ins(%q, %t : tensor<2x{rows}x32xf32>, tensor<2x32x?xf32>)
    outs(%zeros : tensor<2x{rows}x?xf32>) -> tensor<2x{rows}x?xf32>
  return %r : tensor<2x{rows}x?xf32>
}}
"""
# Both sides: the first matrix is read by columns, and there are few of the second one's.
BOTH = """
func.func @both(%x: tensor<64x40xf32>, %w: tensor<5x64xf32>) -> (tensor<40x5xf32>, tensor<64x5xf32>) {
  %e0 = tensor.empty() : tensor<40x64xf32>
  %e1 = tensor.empty() : tensor<64x5xf32>
  %x2 = linalg.transpose ins(%x : tensor<64x40xf32>) outs(%e0 : tensor<40x64xf32>) permutation = [1, 0]
  %w2 = linalg.transpose ins(%w : tensor<5x64xf32>) outs(%e1 : tensor<64x5xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<40x5xf32>
  %one = arith.constant 1.0 : f32
  %ones = linalg.fill ins(%one : f32) outs(%out : tensor<40x5xf32>) -> tensor<40x5xf32>
  %r = linalg.matmul ins(%x2, %w2 : tensor<40x64xf32>, tensor<64x5xf32>)
    outs(%ones : tensor<40x5xf32>) -> tensor<40x5xf32>
  return %r, %w2 : tensor<40x5xf32>, tensor<64x5xf32>
}
"""


@pytest.mark.parametrize("chip", ["host", "sm_90", "gfx942"])
def test_layers(chip: str) -> None:
    random = np.random.default_rng(1)
    w = random.integers(-4, 5, (96, 64)).astype(np.float32)
    with running_on(chip, PROGRAMS / "transposed_weights.mlir") as library:
        for rows, name in ((3, "few"), (80, "many")):
            x = random.integers(-4, 5, (rows, 64)).astype(np.float32)
            np.testing.assert_array_equal(getattr(library, name)(x, w).numpy(), x @ w.T)


@pytest.mark.parametrize("chip", ["host", "sm_90", "gfx1100"])
@pytest.mark.parametrize("rows", [1, 6, 48])
def test_batches(chip: str, rows: int) -> None:
    random = np.random.default_rng(rows)
    q = random.integers(-4, 5, (2, rows, 32)).astype(np.float32)
    source = HEADS.format(rows=rows)
    assert ("memref<2x32x?xf32>" in emit_text(source, "kernels")) == (rows > 32)
    with running_on(chip, source) as library:
        for count in (1, 37):
            k = random.integers(-4, 5, (count, 2, 32)).astype(np.float32)
            np.testing.assert_array_equal(library.scores(q, k, count).numpy(), np.einsum("hqd,khd->hqk", q, k))


@pytest.mark.parametrize("chip", ["host", "gfx942"])
def test_both_matrices(chip: str) -> None:
    """What else needs a transposed matrix has it."""
    random = np.random.default_rng(2)
    x, w = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 40), (5, 64)))
    with running_on(chip, BOTH) as library:
        product, moved = library.both(x, w)
        np.testing.assert_array_equal(product.numpy(), x.T @ w.T + 1)
        np.testing.assert_array_equal(moved.numpy(), w.T)
