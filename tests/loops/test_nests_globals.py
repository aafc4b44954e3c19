"""Nests that read, between their loops, what the inner one may write by another name: a global that is an argument,
too, or one array that is two arguments."""

from __future__ import annotations

import numpy as np
import pytest
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


WITHOUT_FIRST = """
func.func @f(%x: memref<ROWSxCOLUMNSxf32>, %y: memref<ROWSxCOLUMNSxf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<ROWSxCOLUMNSxf32>
  %columns = memref.dim %x, %c1 : memref<ROWSxCOLUMNSxf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %first = memref.load %x[%i, %c0] : memref<ROWSxCOLUMNSxf32>
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %each = memref.load %x[%i, %j] : memref<ROWSxCOLUMNSxf32>
      %rest = arith.subf %each, %first : f32
      memref.store %rest, %y[%i, %j] : memref<ROWSxCOLUMNSxf32>
    }
  }
  return
}
"""


@pytest.mark.parametrize(("rows", "columns"), [("?", "?"), ("8", "64"), ("8", "?")])
def test_what_works_in_place(rows: str, columns: str) -> None:
    """Threads of a block read the first element when another one had written it."""
    library = on_host(WITHOUT_FIRST.replace("ROWS", rows).replace("COLUMNS", columns))
    x, y = np.arange(5, 8 * 64 + 5, dtype=np.float32).reshape(8, 64), np.zeros((8, 64), np.float32)
    right = np.broadcast_to(np.arange(64, dtype=np.float32), (8, 64))
    library.f(x, y)
    np.testing.assert_array_equal(y, right)
    library.f(x, x)
    np.testing.assert_array_equal(x, right)
