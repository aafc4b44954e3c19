"""Signs of zeros in AMD machine code, which tests/emulator executes."""

from __future__ import annotations

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
