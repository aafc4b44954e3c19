"""Products of matrices one of which is the result of a linalg.transpose: few rows read it where it was made from."""

from __future__ import annotations

import re

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
# Long sums of both matrices, of which one is also a result, and a matrix that the product would read by columns.
BOTH = """
func.func @both(%x: tensor<160x40xf32>, %w: tensor<5x160xf32>) -> (tensor<40x5xf32>, tensor<160x5xf32>) {
  %e0 = tensor.empty() : tensor<40x160xf32>
  %e1 = tensor.empty() : tensor<160x5xf32>
  %x2 = linalg.transpose ins(%x : tensor<160x40xf32>) outs(%e0 : tensor<40x160xf32>) permutation = [1, 0]
  %w2 = linalg.transpose ins(%w : tensor<5x160xf32>) outs(%e1 : tensor<160x5xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<40x5xf32>
  %one = arith.constant 1.0 : f32
  %ones = linalg.fill ins(%one : f32) outs(%out : tensor<40x5xf32>) -> tensor<40x5xf32>
  %r = linalg.matmul ins(%x2, %w2 : tensor<40x160xf32>, tensor<160x5xf32>)
    outs(%ones : tensor<40x5xf32>) -> tensor<40x5xf32>
  return %r, %w2 : tensor<40x5xf32>, tensor<160x5xf32>
}
func.func @twice(%q: tensor<7x160xf32>, %w: tensor<9x160xf32>) -> (tensor<7x9xf32>, tensor<160x9xf32>) {
  %e = tensor.empty() : tensor<160x9xf32>
  %w2 = linalg.transpose ins(%w : tensor<9x160xf32>) outs(%e : tensor<160x9xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<7x9xf32>
  %one = arith.constant 1.0 : f32
  %ones = linalg.fill ins(%one : f32) outs(%out : tensor<7x9xf32>) -> tensor<7x9xf32>
  %r = linalg.matmul ins(%q, %w2 : tensor<7x160xf32>, tensor<160x9xf32>)
    outs(%ones : tensor<7x9xf32>) -> tensor<7x9xf32>
  return %r, %w2 : tensor<7x9xf32>, tensor<160x9xf32>
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
@pytest.mark.parametrize("rows", [1, 3, 6])
def test_batches(chip: str, rows: int) -> None:
    random = np.random.default_rng(rows)
    q = random.integers(-4, 5, (2, rows, 32)).astype(np.float32)
    source = HEADS.format(rows=rows)
    assert ("memref<2x32x?xf32>" in emit_text(source, "kernels")) == (rows > 3)  # of short sums
    with running_on(chip, source) as library:
        for count in (1, 37):
            k = random.integers(-4, 5, (count, 2, 32)).astype(np.float32)
            np.testing.assert_array_equal(library.scores(q, k, count).numpy(), np.einsum("hqd,khd->hqk", q, k))


@pytest.mark.parametrize("chip", ["host", "gfx942"])
def test_both_matrices(chip: str) -> None:
    """What else needs a transposed matrix has it."""
    random = np.random.default_rng(2)
    x, w, q, v = (
        random.integers(-4, 5, shape).astype(np.float32) for shape in ((160, 40), (5, 160), (7, 160), (9, 160))
    )
    both, twice = emit_text(BOTH, "kernels").split("func.func @twice")
    assert "memref<40x160xf32>, %" in both  # which would be read by columns
    assert re.search(r"args\(.*memref<7x160xf32>.*memref<9x160xf32>", twice)
    with running_on(chip, BOTH) as library:
        product, moved = library.both(x, w)
        np.testing.assert_array_equal(product.numpy(), x.T @ w.T + 1)
        np.testing.assert_array_equal(moved.numpy(), w.T)
        product, moved = library.twice(q, v)
        np.testing.assert_array_equal(product.numpy(), q @ v.T + 1)
        np.testing.assert_array_equal(moved.numpy(), v.T)
