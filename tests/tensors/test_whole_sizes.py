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


PERHAPS = """
func.func @viewed() -> i1 {
  %c0 = arith.constant 0 : index
  %n = arith.constant 100 : index
  %most = arith.constant 16 : index
  %one = arith.constant 1.0 : f32
  %bytes = memref.alloc() : memref<64xi8>
  %v = memref.view %bytes[%c0][%n] : memref<64xi8> to memref<?xf32>
  %p = memref.subview %v[0] [%n] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  %fits = arith.cmpi ule, %n, %most : index
  scf.if %fits {
    memref.store %one, %v[%c0] : memref<?xf32>
    memref.store %one, %p[%c0] : memref<?xf32, strided<[1]>>
  }
  memref.dealloc %bytes : memref<64xi8>
  return %fits : i1
}
func.func @reshaped(%is: i1, %a: memref<?xf32>, %shape: memref<2xindex>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c99 = arith.constant 99 : index
  %v = memref.reshape %a(%shape) : (memref<?xf32>, memref<2xindex>) -> memref<?x?xf32>
  memref.store %c99, %shape[%c0] : memref<2xindex>
  scf.if %is {
    linalg.fill ins(%one : f32) outs(%v : memref<?x?xf32>)
  }
  return
}
func.func @chosen(%is: i1, %a: tensor<?xf32>, %shape: tensor<2xi64>, %other: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = scf.if %is -> tensor<?x?xf32> {
    %v = tensor.reshape %a(%shape) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    scf.yield %v : tensor<?x?xf32>
  } else {
    scf.yield %other : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}
func.func @column(%a: tensor<?xf32>, %shape: tensor<2xindex>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %r = tensor.generate %n {
  ^bb0(%i: index):
    %v = tensor.reshape %a(%shape) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
    %e = tensor.extract %v[%i, %c0] : tensor<?x?xf32>
    tensor.yield %e : f32
  } : tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_branches_that_do_not_run_ask_for_nothing() -> None:
    """Views there were errors of the compiler or of the call; a tensor's reshape read what is behind its end."""
    lib = on_host(PERHAPS)
    assert not lib.viewed()
    x = np.zeros(12, np.float32)
    lib.reshaped(False, x, np.array([3, 5]))
    lib.reshaped(True, x, np.array([3, 4]))  # another shape is there when it is filled
    np.testing.assert_array_equal(x, ones(12))
    with pytest.raises(offload.DeviceError, match=r"memref\.reshape: the number of elements .*: 12 and 15\.$"):
        lib.reshaped(True, x, np.array([3, 5]))
    assert lib.chosen(True, x, np.array([3, 4]), ones(1, 2)).shape == (3, 4)
    assert lib.chosen(False, x, np.array([3, 5]), ones(1, 2)).shape == (1, 2)
    with pytest.raises(offload.DeviceError, match=r"tensor\.reshape: the number of elements .*: 12 and 15\.$"):
        lib.chosen(True, x, np.array([3, 5]), ones(1, 2))
    assert lib.column(np.arange(12, dtype=np.float32), np.array([3, 4]), 3).numpy().tolist() == [0, 4, 8]
    assert lib.column(x, np.array([3, 5]), 0).shape == (0,)
    with pytest.raises(offload.DeviceError, match=r"tensor\.reshape: the number of elements has to stay"):
        lib.column(x, np.array([3, 5]), 3)


@pytest.mark.parametrize(("kind", "value"), [("vector<8xi1>", "true"), ("vector<2xi4>", "-1"), ("vector<2x4xi1>", "1")])
def test_views_of_vectors_of_bits(kind: str, value: str) -> None:
    """Elements of one byte were taken for as many as they have parts."""
    lib = on_host(f"""func.func @f(%bytes: memref<?xi8>, %n: index) {{
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<{value}> : {kind}
  %v = memref.view %bytes[%c0][%n] : memref<?xi8> to memref<?x{kind}>
  memref.store %all, %v[%c0] : memref<?x{kind}>
  return
}}""")
    x = np.zeros(4, np.int8)
    lib.f(x, 4)
    assert x[0] != 0
    assert x[3] == 0
    with pytest.raises(offload.DeviceError, match="5 and 4"):
        lib.f(x, 5)


LAUNCHED = """
func.func private @each(%bytes: memref<?xi8{space}>, %n: index, %t: index, %y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  {viewed}
  %two = arith.constant 2.0 : f32
  memref.store %two, %v[%t] : memref<?xf32{space}>
  %r = memref.load %v[%t] : memref<?xf32{space}>
  memref.store %r, %y[%t] : memref<?xf32>
  return
}}
func.func @f(%n: index, %y: memref<?xf32>) {{
  %c1 = arith.constant 1 : index
  %most = arith.constant 64 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %n, %ly = %c1, %lz = %c1) dynamic_shared_memory_size %most {{
    %{own} = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    {cast}
    func.call @each(%b, %n, %tx, %y) : (memref<?xi8{space}>, index, index, memref<?xf32>) -> ()
    gpu.terminator
  }}
  return
}}
"""
VIEW = "%v = memref.view %{0}[%c0][%n] : memref<{1}xi8{2}> to memref<?xf32{2}>"


@pytest.mark.parametrize("space", ["", ", #gpu.address_space<workgroup>"])
@pytest.mark.parametrize("how", ["view", "subview", "cast"])
def test_memory_whose_size_a_launch_tells(how: str, space: str) -> None:
    """It says itself that it has no bytes: functions that threads call with it ended with an error."""
    of = f"memref<?xi8{space}> to memref<64xi8"
    viewed = {
        "view": VIEW.format("bytes", "?", space),
        "subview": f"%p = memref.subview %bytes[0] [64] [1] : {of}, strided<[1]>{space}>\n"
        f"  %q = memref.cast %p : memref<64xi8, strided<[1]>{space}> to memref<64xi8{space}>\n"
        + VIEW.format("q", "64", space),
        "cast": f"%p = memref.cast %bytes : {of}{space}>\n" + VIEW.format("p", "64", space),
    }[how]
    cast = "%b = memref.memory_space_cast %own : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xi8>"
    own, cast = ("b", "") if space else ("own", cast)
    y = np.zeros(4, np.float32)
    on_host(LAUNCHED.format(viewed=viewed, cast=cast, own=own, space=space)).f(4, y)
    np.testing.assert_array_equal(y, 2 * ones(4))
