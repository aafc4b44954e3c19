"""Parallel loops of host code with results: kernels reduce them, whatever the reduction and however many values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice

import offload

TOTAL = """
func.func @f(%x: memref<?xTYPE>, %start: TYPE) -> TYPE {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xTYPE>
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%start) -> TYPE {
    %v = memref.load %x[%i] : memref<?xTYPE>
    scf.reduce(%v : TYPE) {
    ^bb0(%a: TYPE, %b: TYPE):
      %s = arith.OPERATION %a, %b : TYPE
      scf.reduce.return %s : TYPE
    }
  }
  return %r : TYPE
}
"""
# MLIR's type, the operation, NumPy's type and the operation.
KINDS = {
    "sum": ("i32", "addi", np.int32, np.add),
    "product": ("i64", "muli", np.int64, np.multiply),
    "largest": ("f64", "maximumf", np.float64, np.maximum),
    "smallest": ("f32", "minnumf", np.float32, np.fmin),
    "any": ("i1", "ori", np.bool_, np.logical_or),
    "bits": ("i16", "xori", np.int16, np.bitwise_xor),
}


def text_of(name: str) -> str:
    return TOTAL.replace("TYPE", KINDS[name][0]).replace("OPERATION", KINDS[name][1])


def check(function: Callable[..., object], name: str, size: int) -> None:
    _, _, dtype, operation = KINDS[name]
    x = np.random.default_rng(size).integers(-40, 40, size).astype(dtype)
    start = dtype(3 if name != "any" else False)
    with np.errstate(over="ignore"):
        assert function(x, start) == operation.reduce(x, initial=start), size


@pytest.mark.parametrize("name", KINDS)
def test_one_value(name: str) -> None:
    """Up to 32, 2048 and 131072 values are left on the way."""
    for size in (0, 1, 2, 31, 32, 33, 1000, 2048, 2049, 131_072, 131_073, 300_000):
        check(on_host(text_of(name)).f, name, size)
    assert len(emit(text_of(name), "object", ALL_TARGETS)) == 4 * len(ALL_TARGETS)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_on_devices(chip: str) -> None:
    library = offload.compile(text_of("sum"), targets=[f"rocdl:{chip}"])
    with shared().chip(chip):
        library.use("hip")
        for size in (0, 1, 300):
            check(OnDevice(library).f, "sum", size)
    shared().check()


SEVERAL = """
func.func @f(%x: memref<?x?xi32>, %low: index, %step: index, %seen: memref<?x?xi32>) -> (i32, i1, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0 : i32
  %hundred = arith.constant 100 : i32
  %no = arith.constant false
  %rows = memref.dim %x, %c0 : memref<?x?xi32>
  %columns = memref.dim %x, %c1 : memref<?x?xi32>
  %twice:3 = scf.for %k = %c0 to %c2 step %c1 iter_args(%p = %zero, %q = %no, %m = %c0) -> (i32, i1, index) {
    %r:3 = scf.parallel (%i, %j) = (%low, %c0) to (%rows, %columns) step (%step, %c2) init (%p, %q, %m)
        -> (i32, i1, index) {
      %v = memref.load %x[%i, %j] : memref<?x?xi32>
      %large = arith.cmpi sgt, %v, %hundred : i32
      memref.store %v, %seen[%i, %j] : memref<?x?xi32>
      %place = arith.muli %i, %j : index
      scf.reduce(%v, %large, %place : i32, i1, index) {
      ^bb0(%a: i32, %b: i32):
        %s = arith.addi %a, %b : i32
        scf.reduce.return %s : i32
      }, {
      ^bb0(%a: i1, %b: i1):
        %s = arith.ori %a, %b : i1
        scf.reduce.return %s : i1
      }, {
      ^bb0(%a: index, %b: index):
        %s = arith.maxui %a, %b : index
        scf.reduce.return %s : index
      }
    }
    scf.yield %r#0, %r#1, %r#2 : i32, i1, index
  }
  return %twice#0, %twice#1, %twice#2 : i32, i1, index
}
"""


@pytest.mark.parametrize(("low", "step"), [(0, 1), (3, 4), (70, 1)])
def test_several_values_of_several_loops(low: int, step: int) -> None:
    """In a loop of the host's, of types that differ; the loop's body writes, once for each iteration."""
    x = np.arange(60 * 41, dtype=np.int32).reshape(60, 41)
    seen, expected = np.zeros_like(x), np.zeros_like(x)
    part = x[low::step, ::2]
    expected[low::step, ::2] = part
    largest = range(low, 60, step)[-1] * 40 if low < 60 else 0
    assert on_host(SEVERAL).f(x, low, step, seen) == (2 * part.sum(), bool((part > 100).any()), largest)
    np.testing.assert_array_equal(seen, expected)


NESTED = """
func.func @f(%x: memref<?x?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  %r = scf.parallel (%i) = (%c0) to (%rows) step (%c1) init (%zero) -> f32 {
    %row = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      scf.reduce(%v : f32) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }
    }
    scf.reduce(%row : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.maxnumf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %r : f32
}
"""


def test_the_largest_sum_of_a_row() -> None:
    x = np.random.default_rng(1).integers(0, 50, (40, 33)).astype(np.float32)
    assert on_host(NESTED).f(x) == x.sum(1).max()


def test_plain_pointers() -> None:
    """Kernels of arrays of static shape: what a loop leaves is such an array, too."""
    text = TOTAL.replace("TYPE", "i32").replace("OPERATION", "addi").replace("memref<?xi32>", "memref<1000xi32>")
    library = offload.compile(text, targets=["host"], bare_pointers=True)
    assert library.f(np.arange(1000, dtype=np.int32), 5) == 499505


CAPPED = """
func.func @f(%x: memref<?x{0}>, %n: index) -> {0} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : {0}
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> {0} {{
    %cap = arith.constant 50 : {0}
    %v = memref.load %x[%i] : memref<?x{0}>
    scf.reduce(%v : {0}) {{
    ^bb0(%a: {0}, %b: {0}):
      %s = arith.addi %a, %b : {0}
      %t = arith.minsi %s, {1} : {0}
      scf.reduce.return %t : {0}
    }}
  }}
  return %r : {0}
}}
"""


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
def test_regions_that_use_a_constant_of_the_body(kind: str) -> None:
    library = on_host(CAPPED.format(kind, "%cap"))
    x = np.full(1000, 1, f"int{kind[1:]}")
    assert [library.f(x, n) for n in (0, 20, 50, 1000)] == [0, 20, 50, 50]


def test_regions_that_use_a_value_of_one_iteration_are_refused() -> None:
    with pytest.raises(offload.CompileError, match="combines results with a value of one iteration") as caught:
        on_host(CAPPED.format("i32", "%v"))
    assert caught.value.diagnostics[0].line == 12
