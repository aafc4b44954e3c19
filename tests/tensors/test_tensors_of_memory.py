"""bufferization.to_tensor without `restrict`, as compilers that fill memory by loops leave it: what is in the memory
there, whatever is stored into it later."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text
from emulator.running import running_on

PROGRAM = """
func.func @last(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %m = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = tensor.extract %x[%i] : tensor<8xf32>
    memref.store %v, %m[%i] : memref<8xf32>
  }
  %t = bufferization.to_tensor %m : memref<8xf32> to tensor<8xf32>
  %r = linalg.add ins(%t, %t : tensor<8xf32>, tensor<8xf32>) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @stored_later(%y: memref<8xf32>, %n: index) -> (tensor<?xf32>, tensor<8xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7.0 : f32
  %one = arith.constant 1.0 : f32
  %m = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%one : f32) outs(%m : memref<?xf32>)
  %view = memref.cast %m : memref<?xf32> to memref<8xf32>
  %t = bufferization.to_tensor %m : memref<?xf32> to tensor<?xf32>
  memref.store %seven, %view[%c0] : memref<8xf32>
  %part = memref.subview %y[1] [4] [2] : memref<8xf32> to memref<4xf32, strided<[2], offset: 1>>
  %p = bufferization.to_tensor %part : memref<4xf32, strided<[2], offset: 1>> to tensor<4xf32>
  %u = bufferization.to_tensor %y : memref<8xf32> to tensor<8xf32>
  linalg.fill ins(%seven : f32) outs(%y : memref<8xf32>)
  memref.dealloc %m : memref<?xf32>
  return %t, %u, %p : tensor<?xf32>, tensor<8xf32>, tensor<4xf32>
}
"""


@pytest.mark.parametrize("chip", ["host", "sm_90", "gfx942"])
def test_tensors_of_memory(chip: str) -> None:
    x = np.arange(8, dtype=np.float32)
    with running_on(chip, PROGRAM) as library:
        np.testing.assert_array_equal(library.last(x).numpy(), 2 * x)
        for _ in range(2):
            y = x.copy()
            ones, whole, part = library.stored_later(y, 8)
            np.testing.assert_array_equal(ones.numpy(), np.ones(8))
            np.testing.assert_array_equal(whole.numpy(), x)
            np.testing.assert_array_equal(part.numpy(), x[1::2])
            np.testing.assert_array_equal(y, np.full(8, 7))


def test_memory_that_nobody_touches_any_more_is_not_copied() -> None:
    last, later = emit_text(PROGRAM, "kernels").split("func.func @stored_later")
    assert "gpu.alloc" in last
    assert "gpu.memcpy" not in last
    assert later.count("gpu.memcpy") == 3
