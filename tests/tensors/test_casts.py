"""Casts in host code to a rank and to strides that memory does not have: what is not there was read behind the end."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import on_host

import offload

CASTS = """
func.func @of_rank(%all: memref<?x?xf32>, %row: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %any = memref.cast %all : memref<?x?xf32> to memref<*xf32>
  %part = memref.collapse_shape %all [[0, 1]] : memref<?x?xf32> into memref<?xf32>
  %line = memref.cast %part : memref<?xf32> to memref<*xf32>
  %x = arith.select %row, %line, %any : memref<*xf32>
  %y = memref.cast %x : memref<*xf32> to memref<?x4xf32>
  %v = memref.load %y[%c0, %c1] : memref<?x4xf32>
  return %v : f32
}
func.func @laid_out(%x: memref<?x?xf32>, %from: index, %step: index, %rows: index) -> f32 {
  %c0 = arith.constant 0 : index
  %part = memref.subview %x[%from, 0] [%rows, 2] [%step, 1]
      : memref<?x?xf32> to memref<?x2xf32, strided<[?, 1], offset: ?>>
  %y = memref.cast %part
      : memref<?x2xf32, strided<[?, 1], offset: ?>> to memref<?x2xf32, strided<[4, 1], offset: 4>>
  %v = memref.load %y[%c0, %c0] : memref<?x2xf32, strided<[4, 1], offset: 4>>
  return %v : f32
}
func.func @without_gaps(%x: memref<?x?xf32, strided<[?, ?], offset: ?>>) -> f32 {
  %c0 = arith.constant 0 : index
  %y = memref.cast %x : memref<?x?xf32, strided<[?, ?], offset: ?>> to memref<?x?xf32>
  %v = memref.load %y[%c0, %c0] : memref<?x?xf32>
  return %v : f32
}
"""


def test_casts() -> None:
    library = on_host(CASTS)
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert library.of_rank(x, False) == 1
    with pytest.raises(offload.DeviceError, match="the rank of operand 1 of 1 has to be 2, as it is cast to: 1 and 2"):
        library.of_rank(x, True)
    with pytest.raises(
        offload.DeviceError, match="dimension 1 of operand 1 of 1 has to be 4, as it is cast to: 8 and 4"
    ):
        library.of_rank(x.reshape(3, 8), False)
    assert library.laid_out(x, 1, 1, 2) == 4
    assert library.laid_out(x, 1, 3, 1) == 4  # of one row, steps may be any
    with pytest.raises(
        offload.DeviceError, match="the offset of operand 1 of 1 has to be 4, as it is cast to: 8 and 4"
    ):
        library.laid_out(x, 2, 1, 2)
    with pytest.raises(
        offload.DeviceError, match=r"the stride of dimension 0 of operand 1 of 1 has to be 4, .*: 8 and 4"
    ):
        library.laid_out(x, 1, 2, 2)
    assert library.without_gaps(x) == 0
    assert library.without_gaps(x[:1, ::2][:, :1]) == 0
    with pytest.raises(
        offload.DeviceError, match=r"the stride of dimension 0 .* has to be that of memory without gaps"
    ):
        library.without_gaps(x[:, :2])
    with pytest.raises(offload.DeviceError, match=r"the stride of dimension 1 .* has to be 1, as it is cast to"):
        library.without_gaps(x.T)
