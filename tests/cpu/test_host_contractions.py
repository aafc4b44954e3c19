"""Contractions of vectors on the CPU: sums of products, which its levels round in different ways."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from compiling import emit_text, on_host

import offload

CONTRACTION = """
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
gpu.module @m {
  gpu.func @k(%x: memref<16x16xTYPE>, %y: memref<16x16xTYPE>, %z: memref<16x16xTYPE>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0, %c0] : memref<16x16xTYPE>, vector<16x16xTYPE>
    %b = vector.load %y[%c0, %c0] : memref<16x16xTYPE>, vector<16x16xTYPE>
    %c = vector.load %z[%c0, %c0] : memref<16x16xTYPE>, vector<16x16xTYPE>
    %d = vector.contract {
        indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>
      } %a, %b, %c : vector<16x16xTYPE>, vector<16x16xTYPE> into vector<16x16xTYPE>
    vector.store %d, %z[%c0, %c0] : memref<16x16xTYPE>, vector<16x16xTYPE>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("target", ["host", "host:x86-64-v3"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_contractions(target: str, kind: str) -> None:
    """Sums of products without a processor's instruction that rounds once were minutes of compiling. Those of f16 are
    more exact than the type."""
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    text = CONTRACTION.replace("TYPE", kind)
    assert "llvm.fma" not in emit_text(text, "llvm", [target])
    x, y, z = np.random.default_rng(0).standard_normal((3, 16, 16)).astype(dtype)
    exact = x.astype(np.float64) @ y + z
    offload.compile(text, targets=[target]).kernels.k[1, 1](x, y, z)
    np.testing.assert_allclose(z, exact, rtol=4 * np.finfo(dtype).eps, atol=16 * np.finfo(dtype).eps)


def test_a_products_own_rounding_stays() -> None:
    """vector.fma rounds once, whatever the processor."""
    text = """gpu.module @m {
  gpu.func @k(%x: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<4xf64>, vector<4xf64>
    %r = vector.fma %a, %a, %a : vector<4xf64>
    vector.store %r, %x[%c0] : memref<4xf64>, vector<4xf64>
    gpu.return
  }
}"""
    x = np.array([1 + 2.0**-52, 1 - 2.0**-53, 3.0, -1 / 3])
    wanted = [float(Fraction(v) * Fraction(v) + Fraction(v)) for v in x]
    on_host(text).kernels.k[1, 1](x)
    np.testing.assert_array_equal(x, wanted)
