"""Tensors that are in a program's text: weights of a network, in attributes or in the resources behind the module."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.running import running_on

WEIGHTS = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
PROGRAM = f"""
func.func @f(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xindex>) {{
  %a = arith.constant dense<{WEIGHTS.tolist()}> : tensor<2x3x4xf32>
  %b = arith.constant dense_resource<weights> : tensor<2x3x4xf32>
  %c = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xindex>
  %ax = arith.mulf %a, %x : tensor<2x3x4xf32>
  %sum = arith.addf %ax, %b : tensor<2x3x4xf32>
  return %sum, %c : tensor<2x3x4xf32>, tensor<2x3xindex>
}}
{{-#
  dialect_resources: {{ builtin: {{ weights: "0x04000000{(WEIGHTS + 100).tobytes().hex().upper()}" }} }}
#-}}
"""


@pytest.mark.parametrize("chip", ["host", "sm_90", "gfx942"])
def test_constants(chip: str) -> None:
    x = np.random.default_rng(0).integers(-4, 5, WEIGHTS.shape).astype(np.float32)
    with running_on(chip, PROGRAM) as library:
        found, numbers = library.f(x)
        np.testing.assert_array_equal(found.numpy(), WEIGHTS * x + WEIGHTS + 100)
        np.testing.assert_array_equal(numbers.numpy(), [[1, 2, 3], [4, 5, 6]])


def test_constants_are_one_array_each() -> None:
    """LLVM has an object for each row of an array of arrays: millions of them in a network."""
    code = emit_text(PROGRAM, "host-llvm")
    assert code.count("[24 x float] [float") == 2
    assert "[6 x i64] [i64" in code
    assert "x [4 x float]" not in code


def test_resources_of_no_elements() -> None:
    source = """
func.func @f() -> (tensor<0x3xf32>, tensor<0xf32>) {
  %a = arith.constant dense_resource<none> : tensor<0x3xf32>
  %b = arith.constant dense_resource<none> : tensor<0xf32>
  return %a, %b : tensor<0x3xf32>, tensor<0xf32>
}
{-#
  dialect_resources: { builtin: { none: "0x04000000" } }
#-}
"""
    assert [found.shape for found in on_host(source).f()] == [(0, 3), (0,)]
