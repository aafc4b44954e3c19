"""Products of matrices of which one has a single row: they are those of a matrix and a vector, with their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit_text
from test_whole_programs import run

PROGRAM = """
#row = affine_map<(m, n, k) -> (m, k)>
#weights = affine_map<(m, n, k) -> (n, k)>
#result = affine_map<(m, n, k) -> (m, n)>
func.func @known(%x: memref<1x300xf32>, %w: memref<70x300xf32>, %y: memref<1x70xf32>) {
  linalg.matmul indexing_maps = [#row, #weights, #result]
      ins(%x, %w : memref<1x300xf32>, memref<70x300xf32>) outs(%y : memref<1x70xf32>)
  return
}
func.func @layer(%x: tensor<1x?xf32>, %w: tensor<?x?xf32>, %bias: tensor<1x?xf32>) -> tensor<1x?xf32> {
  %r = linalg.matmul indexing_maps = [#row, #weights, #result]
      ins(%x, %w : tensor<1x?xf32>, tensor<?x?xf32>) outs(%bias : tensor<1x?xf32>) -> tensor<1x?xf32>
  return %r : tensor<1x?xf32>
}
func.func @plain(%x: memref<1x?xf32>, %w: memref<?x?xf32>, %y: memref<1x?xf32>) {
  linalg.matmul ins(%x, %w : memref<1x?xf32>, memref<?x?xf32>) outs(%y : memref<1x?xf32>)
  return
}
func.func @batches(%x: memref<?x1x?xi8>, %w: memref<?x?x?xi8>, %y: memref<?x1x?xi32>) {
  linalg.batch_matmul ins(%x, %w : memref<?x1x?xi8>, memref<?x?x?xi8>) outs(%y : memref<?x1x?xi32>)
  return
}
func.func @column(%w: memref<?x?xf32>, %x: memref<?x1xf32>, %y: memref<?x1xf32>) {
  linalg.matmul ins(%w, %x : memref<?x?xf32>, memref<?x1xf32>) outs(%y : memref<?x1xf32>)
  return
}
func.func @strided(%x: memref<1x?xf32, strided<[?, ?]>>, %w: memref<?x?xf32>, %y: memref<1x?xf32>) {
  linalg.matmul ins(%x, %w : memref<1x?xf32, strided<[?, ?]>>, memref<?x?xf32>) outs(%y : memref<1x?xf32>)
  return
}
func.func @one(%x: memref<1x300xf32>, %w: memref<300x1xf32>, %y: memref<1x1xf32>) {
  linalg.matmul ins(%x, %w : memref<1x300xf32>, memref<300x1xf32>) outs(%y : memref<1x1xf32>)
  return
}
"""

_random = np.random.default_rng(43)


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, of which no order of additions rounds a sum."""
    return _random.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("target", ["host", "host,O=0", "sm_90", "gfx942", "gfx1100"])
def test_products(target: str) -> None:
    def check(library: Any) -> None:
        x, w, y = whole(1, 300), whole(70, 300), whole(1, 70)
        expected = y + x @ w.T
        library.known(x, w, y)
        np.testing.assert_array_equal(y, expected)
        for n, k in ((1, 1), (70, 300), (300, 9), (5, 0), (0, 70)):
            x, w, y = whole(1, k), whole(n, k), whole(1, n)
            expected = y + x @ w.T
            np.testing.assert_array_equal(library.layer(x, w, y).numpy(), expected)
            z, wt = y.copy(), w.T.copy()
            library.plain(x, wt, z)
            np.testing.assert_array_equal(z, expected)
            down = y.T.copy()
            library.column(w, x.T.copy(), down)
            np.testing.assert_array_equal(down, expected.T)
            a, b, c = (v.astype(kind) for v, kind in ((x, np.int8), (wt, np.int8), (y, np.int32)))
            c3 = np.stack([c, c])
            library.batches(np.stack([a, 2 * a]), np.stack([b, b]), c3)
            product = a.astype(np.int32) @ b.astype(np.int32)
            np.testing.assert_array_equal(c3, [c + product, c + 2 * product])
            library.strided(np.repeat(x, 2, 1)[:, ::2], wt, y)
            np.testing.assert_array_equal(y, expected)
        x, w, y = whole(1, 300), whole(300, 1), whole(1, 1)
        expected = y + x @ w
        library.one(x, w, y)
        np.testing.assert_array_equal(y, expected)

    run(PROGRAM, target, check)


def test_rows_of_the_matrix_have_threads_that_share_them_out() -> None:
    text = emit_text(PROGRAM, "kernels")
    assert "gpu.shuffle" in text[text.index("@known_kernel(") : text.index("gpu.return", text.index("@known_kernel("))]
