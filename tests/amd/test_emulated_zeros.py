"""Signs of zeros in AMD machine code, which tests/emulator executes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]

ROUNDED = """
gpu.module @m { gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf16>) kernel {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf32>
  %w = memref.load %y[%t] : memref<?xf32>
  %p = arith.mulf %v, %w : f32
  %h = arith.truncf %p : f32 to f16
  memref.store %h, %z[%t] : memref<?xf16>
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_zeros_that_are_rounded_products_have_a_sign(driver: Driver, chip: str) -> None:
    """LLVM rounds a product by adding +0.0 to it."""
    x, y = (np.array(values, np.float32) for values in ([-0.0, 0.0, -0.0, 3.0, -2.0], [1.0, -2.0, -1.0, 0.5, 0.0]))
    z = np.ones(5, np.float16)
    with driver.chip(chip):
        OnDevice(compiled(ROUNDED, chip)).kernels.k[1, 5](x, y, z)
    np.testing.assert_array_equal(z, x * y)
    np.testing.assert_array_equal(np.signbit(z), np.signbit(x * y))


SUMS = """
gpu.module @m { gpu.func @k(%x: memref<?x2xTYPE>, %out: memref<?x8xTYPE>) kernel {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant dense<0.0> : vector<2xTYPE>
  %one = arith.constant dense<1.0> : vector<2xTYPE>
  %less = arith.constant dense<-1.0> : vector<2xTYPE>
  %t = gpu.thread_id x
  %v = vector.load %x[%t, %c0] : memref<?x2xTYPE>, vector<2xTYPE>
  %minus = arith.negf %v : vector<2xTYPE>
  %difference = arith.subf %zero, %v : vector<2xTYPE>
  %a = math.ceil %difference : vector<2xTYPE>
  %sum = arith.addf %minus, %zero : vector<2xTYPE>
  %b = math.copysign %one, %sum : vector<2xTYPE>
  %fused = math.fma %v, %less, %zero : vector<2xTYPE>
  %c = math.floor %fused : vector<2xTYPE>
  %product = arith.mulf %minus, %v : vector<2xTYPE>
  %last = arith.addf %product, %zero : vector<2xTYPE>
  %d = arith.mulf %last, %one : vector<2xTYPE>
  %e = math.ceil %d : vector<2xTYPE>
  vector.store %a, %out[%t, %c0] : memref<?x8xTYPE>, vector<2xTYPE>
  vector.store %b, %out[%t, %c2] : memref<?x8xTYPE>, vector<2xTYPE>
  vector.store %c, %out[%t, %c4] : memref<?x8xTYPE>, vector<2xTYPE>
  vector.store %e, %out[%t, %c6] : memref<?x8xTYPE>, vector<2xTYPE>
  gpu.return
} }
"""
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("target", [*CHIPS, "gfx942,O=0"])
def test_zero_minus_zero_is_positive(driver: Driver, target: str, kind: str) -> None:
    """LLVM takes 0.0 - x for -x where an instruction can turn its operand's sign over."""
    x = np.array([[0.0, -0.0], [2.5, -0.25]])
    given, out = x.astype(TYPES[kind]), np.ones((2, 8), TYPES[kind])
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(SUMS.replace("TYPE", kind), target)).kernels.k[1, 2](given, out)
    want = np.hstack([np.ceil(0 - x), np.copysign(1, 0 - x), np.floor(0 - x), np.ceil(0 - x * x)])
    np.testing.assert_array_equal(out.astype(np.float64), want)
    np.testing.assert_array_equal(np.signbit(out.astype(np.float64)), np.signbit(want))


FUSED = """
gpu.module @m { gpu.func @k(%x: memref<?xTYPE>, %y: memref<?xTYPE>, %z: memref<?x2xTYPE>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : TYPE
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xTYPE>
  %w = memref.load %y[%t] : memref<?xTYPE>
  %minus = arith.negf %v : TYPE
  %f = math.fma %minus, %w, %zero : TYPE
  memref.store %f, %z[%t, %c0] : memref<?x2xTYPE>
  %g = math.fma %w, %minus, %zero : TYPE
  %h = math.ceil %g : TYPE
  memref.store %h, %z[%t, %c1] : memref<?x2xTYPE>
  gpu.return
} }
"""


@pytest.mark.parametrize(("kind", "small"), [("f16", 2.0**-20), ("f32", 2.0**-100), ("f64", 2.0**-1000)])
@pytest.mark.parametrize("target", [*CHIPS, "gfx942,O=0"])
def test_products_too_small_for_their_type_keep_their_sign_beside_zero(
    driver: Driver, target: str, kind: str, small: float
) -> None:
    """They are no zeros, where they are added to one and rounded then."""
    x, y = (np.array(values, TYPES[kind]) for values in ([small, -small, 0.0, -0.0, 0.0, 2.0], [small] * 2 + [1.0] * 4))
    y[4] = np.inf
    out = np.ones((6, 2), TYPES[kind])
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(FUSED.replace("TYPE", kind), target)).kernels.k[1, 6](x, y, out)
    want = np.array([-0.0, 0.0, 0.0, 0.0, np.nan, -2.0])
    for column in out.T:
        np.testing.assert_array_equal(column, want)
        np.testing.assert_array_equal(np.signbit(column[:4]), np.signbit(want[:4]))
