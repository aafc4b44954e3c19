"""Nests that read a global and write what may be that global: an argument of a function that the program calls."""

from __future__ import annotations

import numpy as np
from compiling import on_host

SOURCE = """
memref.global "private" @g : memref<64xf32> = dense<1.0>
func.func private @copy_and_add(%p: memref<64xf32>, %out: memref<64x8xf32>) attributes {no_inline} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  %g = memref.get_global @g : memref<64xf32>
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %v = memref.load %g[%i] : memref<64xf32>
    %w = arith.addf %v, %one : f32
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
      memref.store %v, %out[%i, %j] : memref<64x8xf32>
      %is = arith.cmpi eq, %j, %c3 : index
      scf.if %is {
        memref.store %w, %p[%i] : memref<64xf32>
      }
    }
  }
  return
}
func.func @f(%out: memref<64x8xf32>) {
  %g = memref.get_global @g : memref<64xf32>
  call @copy_and_add(%g, %out) : (memref<64xf32>, memref<64x8xf32>) -> ()
  return
}
"""


def test_a_value_that_was_read_before_it_is_written() -> None:
    library, out = on_host(SOURCE), np.zeros((64, 8), np.float32)
    for value in (1, 2):
        library.f(out)
        np.testing.assert_array_equal(out, np.full((64, 8), value))
