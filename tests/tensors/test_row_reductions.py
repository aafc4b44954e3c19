"""Rows that linalg reduces, by subgroups and blocks: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "row_reductions.mlir"

_random = np.random.default_rng(12)


def floats(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def check(library: offload.Library | OnDevice, lengths: tuple[int, ...]) -> None:
    for rows in (0, 1, 3, 9):
        for length in lengths:
            x, y = floats(rows, length), np.full(rows, 2, np.float32)
            library.sums(x, y)
            np.testing.assert_allclose(y, 2 + x.sum(1), rtol=1e-4, atol=1e-4)
    a, v, product = _random.standard_normal((7, 100)), _random.standard_normal(100), np.ones(7)
    library.product(a, v, product)
    np.testing.assert_allclose(product, 1 + a @ v, rtol=1e-12)
    numbers = _random.integers(-(2**31), 2**31, (3, 5000), np.int32)
    least, most = np.zeros(3, np.int32), np.array([0, 2**31 - 1, 0], np.int32)
    library.both_ends(numbers, least, most)
    np.testing.assert_array_equal(least, numbers.min(1))
    np.testing.assert_array_equal(most, np.maximum(numbers.max(1), [0, 2**31 - 1, 0]))
    x, w, y = floats(5, 3, 70), floats(3), np.ones((3, 5), np.float32)
    library.weighted(x, w, y)
    np.testing.assert_allclose(y, 1 + np.einsum("jik,i,k->ij", x, w, np.arange(70)), rtol=1e-4, atol=1e-3)
    total, few = np.ones((), np.float32), floats(50, 20)
    library.all(few, total)
    np.testing.assert_allclose(total, 1 + few.sum(), rtol=1e-4)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library, (0, 1, 31, 32, 33, 63, 64, 65, 1000))
    row, total = floats(1, 50000), np.ones(1, np.float32)
    library.one_row(row, total)
    np.testing.assert_allclose(total, 1 + row.sum(1), rtol=1e-3)
    x, y = floats(100, 64), np.ones(64, np.float32)
    library.columns(x, y)
    np.testing.assert_allclose(y, 1 + x.sum(0), rtol=1e-5, atol=1e-5)
    short, y = floats(64, 63), np.ones(64, np.float32)
    library.short(short, y)
    np.testing.assert_allclose(y, 1 + short.sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, (2, 64, 70))


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


REDUCE = """
func.func @f(%x: memref<9xLENGTHxKIND>, %y: memref<9xKIND>) {
  linalg.reduce {COMBINER} ins(%x : memref<9xLENGTHxKIND>) outs(%y : memref<9xKIND>) dimensions = [1]
  return
}
"""
INTEGERS = {
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.minsi": np.minimum,
    "arith.maxui": lambda x, y: np.maximum(x.view(f"u{x.itemsize}"), y.view(f"u{y.itemsize}")).view(x.dtype),
}
FLOATS = {
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
}
DTYPES = {
    **{f"i{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{"f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype("f4"), "f64": np.dtype("f8")},
}


def reduced(kind: str, length: int, combiner: str) -> tuple[np.ndarray, np.ndarray]:
    """What the program leaves, and what NumPy does, step by step."""
    dtype = DTYPES[kind]
    if kind.startswith("i"):
        x = _random.integers(0, 256, (9, length * dtype.itemsize), np.uint8).view(dtype)
        y, function = x[:, 0] ^ x[:, 1], INTEGERS[combiner]
    else:
        x = _random.standard_normal((9, length)).astype(dtype)
        x[0, :3], x[1, -1], x[2] = [np.inf, -np.inf, -0.0], np.nan, np.nan
        y, function = _random.standard_normal(9).astype(dtype), FLOATS[combiner]
    expected = y.copy()
    with np.errstate(invalid="ignore"):  # ml_dtypes warns of numbers that are none
        for column in x.T:
            expected = function(expected, column)
    text = REDUCE.replace("KIND", kind).replace("COMBINER", combiner).replace("LENGTH", str(length))
    on_host(text).f(x, y)
    return y, expected


@pytest.mark.parametrize("length", [64, 100, 2500])
@pytest.mark.parametrize("kind", DTYPES)
def test_each_type_and_combination(kind: str, length: int) -> None:
    for combiner in INTEGERS if kind.startswith("i") else FLOATS:
        y, expected = reduced(kind, length, combiner)
        np.testing.assert_array_equal(
            y.astype("f8") if kind[0] != "i" else y, expected.astype("f8") if kind[0] != "i" else expected, combiner
        )


IN_LOOPS = """
#row = strided<[100, 1], offset: ?>
func.func private @sums(%x: memref<4x100xf32, #row>, %y: memref<4xf32, strided<[1], offset: ?>>) {
  linalg.reduce {arith.addf} ins(%x : memref<4x100xf32, #row>) outs(%y : memref<4xf32, strided<[1], offset: ?>>)
      dimensions = [1]
  return
}
func.func private @shares(%x: memref<4x100xf32, #row>) {
  linalg.softmax dimension(1) ins(%x : memref<4x100xf32, #row>) outs(%x : memref<4x100xf32, #row>)
  return
}
func.func @called(%x: memref<8x4x100xf32>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %a = memref.subview %x[%i, 0, 0] [1, 4, 100] [1, 1, 1] : memref<8x4x100xf32> to memref<4x100xf32, #row>
    %b = memref.subview %y[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    func.call @sums(%a, %b) : (memref<4x100xf32, #row>, memref<4xf32, strided<[1], offset: ?>>) -> ()
    func.call @shares(%a) : (memref<4x100xf32, #row>) -> ()
    scf.reduce
  }
  return
}
func.func @inside(%x: memref<8x4x100xf32>) {
  affine.parallel (%i) = (0) to (8) {
    %a = memref.subview %x[%i, 0, 0] [1, 4, 100] [1, 1, 1] : memref<8x4x100xf32> to memref<4x100xf32, #row>
    linalg.softmax dimension(1) ins(%a : memref<4x100xf32, #row>) outs(%a : memref<4x100xf32, #row>)
  }
  return
}
"""


def test_rows_in_loops_and_in_functions_that_loops_call() -> None:
    """Which are kernels, and launch none."""
    library = on_host(IN_LOOPS)
    x, y = floats(8, 4, 100), np.ones((8, 4), np.float32)
    want, powers = 1 + x.sum(2), np.exp(x)
    other = x.copy()
    library.called(x, y)
    library.inside(other)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
    for got in (x, other):
        np.testing.assert_allclose(got, powers / powers.sum(2, keepdims=True), rtol=1e-5)
    offload.compile(IN_LOOPS, targets=ALL_TARGETS)


ALONG_OUTPUTS = """
#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>
func.func @each(%x: memref<10x100xf64>, %y: memref<10x100xf64>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<10x100xf64>) outs(%y : memref<10x100xf64>) {
  ^bb0(%a: f64, %b: f64):
    %s = arith.addf %a, %b : f64
    linalg.yield %s : f64
  }
  return
}
func.func @both_ways(%x: memref<10x100xf64>, %y: memref<10xf64>, %z: memref<100xf64>) {
  linalg.generic {indexing_maps = [#all, #rows, #columns], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<10x100xf64>) outs(%y, %z : memref<10xf64>, memref<100xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %s = arith.addf %a, %b : f64
    %t = arith.maximumf %a, %c : f64
    linalg.yield %s, %t : f64, f64
  }
  return
}
#outer = affine_map<(i, j, k) -> (i, k)>
#inner = affine_map<(i, j, k) -> (j, k)>
#every = affine_map<(i, j, k) -> (i, j, k)>
func.func @products(%x: memref<80x20xf64>, %y: memref<90x20xf64>, %z: memref<80x90x20xf64>) {
  linalg.generic {indexing_maps = [#outer, #inner, #every], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<80x20xf64>, memref<90x20xf64>) outs(%z : memref<80x90x20xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %p, %c : f64
    linalg.yield %s : f64
  }
  return
}
"""


def test_loops_that_reduce_along_an_output() -> None:
    """Which has more than one element for them: they keep an order, and do not reduce to one value."""
    library = on_host(ALONG_OUTPUTS)
    x, y, z = _random.standard_normal((10, 100)), np.ones(10), np.zeros(100)
    each = np.ones((10, 100))
    library.each(x, each)
    np.testing.assert_array_equal(each, 1 + x)
    library.both_ways(x, y, z)
    np.testing.assert_allclose(y, 1 + x.sum(1), rtol=1e-12)
    np.testing.assert_array_equal(z, np.maximum(x.max(0), 0))
    a, b, c = _random.standard_normal((80, 20)), _random.standard_normal((90, 20)), np.ones((80, 90, 20))
    library.products(a, b, c)
    np.testing.assert_allclose(c, 1 + a[:, None] * b[None], rtol=1e-12)


COUNTED = """
#all = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
func.func @rows(%x: memref<9x100xi32>, %y: memref<9xi32>, %steps: memref<i32>) {
  %one = arith.constant 1 : i32
  linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<9x100xi32>) outs(%y : memref<9xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    memref.atomic_rmw addi %one, %steps[] : (i32, memref<i32>) -> i32
    linalg.yield %s : i32
  }
  return
}
#outer = affine_map<(i, j, k) -> (i, k)>
#inner = affine_map<(i, j, k) -> (k, j)>
#to = affine_map<(i, j, k) -> (i, j)>
func.func @products(%x: memref<65x3xi32>, %y: memref<3x64xi32>, %z: memref<65x64xi32>, %steps: memref<i32>) {
  %one = arith.constant 1 : i32
  linalg.generic {indexing_maps = [#outer, #inner, #to], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<65x3xi32>, memref<3x64xi32>) outs(%z : memref<65x64xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %p, %c : i32
    memref.atomic_rmw addi %one, %steps[] : (i32, memref<i32>) -> i32
    linalg.yield %s : i32
  }
  return
}
"""


def test_steps_that_write_are_done_once() -> None:
    """No thread without a row or an element of its own repeats another one's."""
    library, steps = on_host(COUNTED), np.zeros((), np.int32)
    x, y = _random.integers(-9, 9, (9, 100), np.int32), np.ones(9, np.int32)
    library.rows(x, y, steps)
    np.testing.assert_array_equal(y, 1 + x.sum(1))
    assert steps == x.size
    a, b, c = (_random.integers(-9, 9, shape, np.int32) for shape in ((65, 3), (3, 64), (65, 64)))
    want = c + a @ b
    steps[...] = 0
    library.products(a, b, c, steps)
    np.testing.assert_array_equal(c, want)
    assert steps == 65 * 64 * 3


@pytest.mark.parametrize("kind", ["i8", "bf16", "f32"])
def test_lanes_of_the_cpu_hand_on_no_more_than_the_value(kind: str) -> None:
    """In words of 64 bits, a vector would have as few lanes as of these, and handing on be most of a short row."""
    combiner = "arith.addi" if kind == "i8" else "arith.addf"
    text = REDUCE.replace("KIND", kind).replace("COMBINER", combiner).replace("LENGTH", "100")
    code = emit_text(text, "llvm", ["host:x86-64-v3"])
    assert "x i8>" in code or "x bfloat>" in code or "x float>" in code
    assert not re.findall(r"(?:load|store) (?:i64|<\d+ x i64>)", code), code


@pytest.mark.parametrize(("shape", "result"), [("9x100", "9x"), ("1x30000", ""), ("20x5000", "")])
def test_sums_in_another_order_may_run_over(shape: str, result: str) -> None:
    """That none does was promised for the author's order alone: as a promise for this one, it would be wrong."""
    dimensions = "[1]" if result else "[0, 1]"
    text = f"""
func.func @f(%x: memref<{shape}xi32>, %y: memref<{result}i32>) {{
  linalg.reduce ins(%x : memref<{shape}xi32>) outs(%y : memref<{result}i32>) dimensions = {dimensions}
    (%a: i32, %b: i32) {{
      %s = arith.addi %a, %b overflow<nsw, nuw> : i32
      linalg.yield %s : i32
    }}
  return
}}
"""
    sums = [line for line in emit_text(text, "kernels").splitlines() if "arith.addi" in line and ": i32" in line]
    assert sums
    assert not [line for line in sums if "overflow" in line]
