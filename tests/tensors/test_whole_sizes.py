"""What is put together, viewed or given another shape as a whole: sizes that do not come out are an error, and nothing
is read or written behind the end."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import on_host

import offload

JOINED = """
func.func @known(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<10xf32> {
  %r = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<10xf32>
  return %r : tensor<10xf32>
}
func.func @columns(%a: tensor<?x?xf32>, %b: tensor<?x2xf32>, %c: tensor<3x?xf32>) -> tensor<?x6xf32> {
  %r = tensor.concat dim(1) %a, %b, %c : (tensor<?x?xf32>, tensor<?x2xf32>, tensor<3x?xf32>) -> tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}
func.func @rows(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x4xf32> {
  %r = tensor.concat dim(0) %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
"""


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_what_is_put_together() -> None:
    lib = on_host(JOINED)
    np.testing.assert_array_equal(lib.known(ones(3), 2 * ones(7)).numpy(), [1] * 3 + [2] * 7)
    np.testing.assert_array_equal(lib.known(ones(0), ones(10)).numpy(), ones(10))
    for one, other in ((8, 8), (2, 3)):  # written behind the end; the rest was any number
        words = rf":3: tensor\.concat: dimension 0 of all operands together has to be 10: {one + other} and 10\.$"
        with pytest.raises(offload.DeviceError, match=words):
            lib.known(ones(one), ones(other))
    assert lib.columns(ones(3, 1), ones(3, 2), ones(3, 3)).numpy().sum() == 18
    with pytest.raises(offload.DeviceError, match=r"dimension 1 of all operands together has to be 6: 7 and 6\.$"):
        lib.columns(ones(3, 1), ones(3, 2), ones(3, 4))
    with pytest.raises(offload.SignatureError, match=r"'a'.*dimension 0 has to be 3"):
        lib.columns(ones(4, 1), ones(3, 2), ones(3, 3))
    assert lib.rows(ones(1, 4), ones(2, 4)).numpy().shape == (3, 4)
    with pytest.raises(offload.SignatureError, match="dimension 1 has to be 4, as dimension 1 of 'a' is; it is 3"):
        lib.rows(ones(1, 4), ones(2, 3))
    words = r"tensor\.concat: dimension 1 of operand 1 of 2 has to be that of the result's type: 3 and 4\.$"
    with pytest.raises(offload.DeviceError, match=words):
        lib.rows(ones(1, 3), ones(2, 3))


VIEWED = """
func.func @sum(%bytes: memref<?xi8>, %at: index, %n: index, %m: index) -> f32 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %v = memref.view %bytes[%at][%n, %m] : memref<?xi8> to memref<?x?xf32>
  %s = memref.alloca() : memref<f32>
  memref.store %zero, %s[] : memref<f32>
  linalg.reduce ins(%v : memref<?x?xf32>) outs(%s : memref<f32>) dimensions = [0, 1] (%x: f32, %y: f32) {
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  %r = memref.load %s[] : memref<f32>
  return %r : f32
}
func.func @last(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bytes = memref.alloc() : memref<64xi8>
  %v = memref.view %bytes[%c0][%n] : memref<64xi8> to memref<?xindex>
  %end = arith.subi %n, %c1 : index
  memref.store %n, %v[%end] : memref<?xindex>
  %r = memref.load %v[%end] : memref<?xindex>
  memref.dealloc %bytes : memref<64xi8>
  return %r : index
}
func.func @perhaps(%is: i1, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %bytes = memref.alloc() : memref<64xi8>
  %v = memref.view %bytes[%c0][%n] : memref<64xi8> to memref<?xvector<4xf32>>
  scf.if %is {
    %all = vector.broadcast %one : f32 to vector<4xf32>
    linalg.fill ins(%all : vector<4xf32>) outs(%v : memref<?xvector<4xf32>>)
  }
  memref.dealloc %bytes : memref<64xi8>
  return %one : f32
}
"""


def test_bytes_that_are_viewed() -> None:
    lib = on_host(VIEWED)
    values = np.arange(16, dtype=np.float32)
    assert lib.sum(values.view(np.int8), 0, 4, 4) == values.sum()
    assert lib.sum(values.view(np.int8), 16, 3, 4) == values[4:].sum()
    assert lib.sum(values.view(np.int8), 64, 0, 4) == 0
    for at, n, m in ((0, 4, 5), (4, 4, 4), (60, 1, 2), (0, -1, 4)):
        left = 64 - at
        words = rf"memref\.view: its elements have to fit into the bytes that are left: {4 * n * m} and {left}\.$"
        with pytest.raises(offload.DeviceError, match=words):
            lib.sum(values.view(np.int8), at, n, m)
    for at in (-4, 68):
        with pytest.raises(offload.DeviceError, match=rf"the shift has to be within the bytes .*: {at} and 64\.$"):
            lib.sum(values.view(np.int8), at, 1, 1)
    assert lib.last(8) == 8
    with pytest.raises(offload.DeviceError, match="72 and 64"):
        lib.last(9)
    assert lib.perhaps(True, 4) == lib.perhaps(False, 5) == 1
    with pytest.raises(offload.DeviceError, match="80 and 64"):
        lib.perhaps(True, 5)


def test_bytes_that_never_suffice() -> None:
    source = VIEWED.split("func.func @perhaps")[0].replace(
        "[%n] : memref<64xi8> to memref<?xi", "[] : memref<64xi8> to memref<9xi"
    )
    with pytest.raises(offload.CompileError, match=r"memref\.view: its elements have to fit .*: 72 and 64"):
        on_host(source.replace("memref<?xindex>", "memref<9xindex>"))


RESHAPED = """
func.func @filled(%a: memref<?xf32>, %shape: memref<2xi32>) {
  %one = arith.constant 1.0 : f32
  %v = memref.reshape %a(%shape) : (memref<?xf32>, memref<2xi32>) -> memref<?x?xf32>
  linalg.fill ins(%one : f32) outs(%v : memref<?x?xf32>)
  return
}
func.func @rows(%a: memref<?xf32>, %shape: memref<2xindex>) {
  %one = arith.constant 1.0 : f32
  %v = memref.reshape %a(%shape) : (memref<?xf32>, memref<2xindex>) -> memref<?x4xf32>
  linalg.fill ins(%one : f32) outs(%v : memref<?x4xf32>)
  return
}
"""


def test_another_shape() -> None:
    lib = on_host(RESHAPED)
    x = np.zeros(12, np.float32)
    lib.filled(x, np.array([3, 4], np.int32))
    np.testing.assert_array_equal(x, ones(12))
    for shape in ((3, 5), (2, 5)):
        count = int(np.prod(shape))
        with pytest.raises(
            offload.DeviceError, match=rf"memref\.reshape: the number of elements .*: 12 and {count}\.$"
        ):
            lib.filled(x, np.array(shape, np.int32))
    lib.rows(2 * x, np.array([3, 4], np.int64))
    with pytest.raises(offload.DeviceError, match="12 and 16"):
        lib.rows(x, np.array([4, 4], np.int64))
