"""Functions with parallel loops that parallel loops call: each thread runs their loops itself."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host

from offload.errors import CompileError

# @squares is called by a loop and by host code, @norms through another function, @early has several blocks.
PROGRAM = """
func.func private @squares(%x: memref<?x?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c1 : memref<?x?xi32>
  scf.parallel (%j) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xi32>
    %w = arith.muli %v, %v : i32
    memref.store %w, %x[%i, %j] : memref<?x?xi32>
  }
  return
}
func.func private @sum_and_largest(%x: memref<?x?xi32>, %i: index, %start: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c1 : memref<?x?xi32>
  %r:2 = scf.parallel (%k, %j) = (%c0, %c0) to (%c2, %n) step (%c1, %c1) init (%start, %start) -> (i32, i32) {
    %v = memref.load %x[%i, %j] : memref<?x?xi32>
    scf.reduce(%v, %v : i32, i32) {
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      scf.reduce.return %s : i32
    }, {
    ^bb0(%a: i32, %b: i32):
      %s = arith.maxsi %a, %b : i32
      scf.reduce.return %s : i32
    }
  }
  return %r#0, %r#1 : i32, i32
}
func.func private @norms(%x: memref<?x?xi32>, %i: index, %to: memref<?xi32>) {
  %start = arith.constant -3 : i32
  %s, %m = func.call @sum_and_largest(%x, %i, %start) : (memref<?x?xi32>, index, i32) -> (i32, i32)
  %t = arith.addi %s, %m : i32
  memref.store %t, %to[%i] : memref<?xi32>
  return
}
func.func private @early(%x: memref<?x?xi32>, %i: index) {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%i, %c0] : memref<?x?xi32>
  %zero = arith.constant 0 : i32
  %none = arith.cmpi eq, %v, %zero : i32
  cf.cond_br %none, ^end, ^go
^go:
  func.call @squares(%x, %i) : (memref<?x?xi32>, index) -> ()
  cf.br ^end
^end:
  return
}
func.func @f(%x: memref<?x?xi32>, %to: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @early(%x, %i) : (memref<?x?xi32>, index) -> ()
    func.call @norms(%x, %i, %to) : (memref<?x?xi32>, index, memref<?xi32>) -> ()
  }
  func.call @squares(%x, %c1) : (memref<?x?xi32>, index) -> ()
  return
}
"""


def test_loops_of_called_functions() -> None:
    x = np.random.default_rng(1).integers(-9, 9, (50, 33), dtype=np.int32)
    x[7, 0] = 0
    expected = np.where(x[:, :1] == 0, x, x * x)
    to, sums = np.zeros(50, np.int32), 2 * expected.sum(1) + expected.max(1) - 3
    expected[1] *= expected[1]
    on_host(PROGRAM).f(x, to)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(to, sums)


def test_what_host_code_calls_stays_parallel_and_what_only_loops_call_is_no_kernel() -> None:
    text = emit_text(PROGRAM, "kernels", ["host"])
    kernels = [line.split("@", 1)[1].split("(", 1)[0] for line in text.splitlines() if "gpu.func" in line]
    assert sorted(kernels) == ["f_kernel", "squares_kernel"], text
    assert len(emit(PROGRAM, "object", ALL_TARGETS)) == 2 * len(ALL_TARGETS)


def test_recursion_is_refused_as_elsewhere() -> None:
    text = PROGRAM.replace(
        "  %t = arith.addi %s, %m : i32\n",
        "  %t = arith.addi %s, %m : i32\n"
        "  func.call @norms(%x, %i, %to) : (memref<?x?xi32>, index, memref<?xi32>) -> ()\n",
    )
    with pytest.raises(CompileError, match=r"recursive|calls itself"):
        on_host(text)


LINALG = """
#all = affine_map<(i) -> (i)>
func.func private @sums(%x: memref<8x100xf64>, %y: memref<8xf64>, %a: f64) -> f64 {
  linalg.reduce {arith.addf} ins(%x : memref<8x100xf64>) outs(%y : memref<8xf64>) dimensions = [1]
  return %a : f64
}
func.func @in_a_body(%x: memref<8x100xf64>, %y: memref<8xf64>, %from: memref<1xf64>, %to: memref<1xf64>) {
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]}
      ins(%from : memref<1xf64>) outs(%to : memref<1xf64>) {
  ^bb0(%a: f64, %b: f64):
    %s = func.call @sums(%x, %y, %a) : (memref<8x100xf64>, memref<8xf64>, f64) -> f64
    linalg.yield %s : f64
  }
  return
}
#one = strided<[], offset: ?>
func.func @few(%x: memref<20xf64>, %y: memref<f64, #one>) {
  linalg.reduce {arith.addf} ins(%x : memref<20xf64>) outs(%y : memref<f64, #one>) dimensions = [0]
  return
}
func.func @in_a_loop(%x: memref<20xf64>, %y: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %s = memref.subview %y[%i] [1] [1] : memref<8xf64> to memref<f64, #one>
    func.call @few(%x, %s) : (memref<20xf64>, memref<f64, #one>) -> ()
  }
  return
}
"""


def test_linalg_of_called_functions() -> None:
    """Called from the body of a linalg operation, too; and where the operation would be a kernel of one thread."""
    library, random = on_host(LINALG), np.random.default_rng(2)
    x, y, to = random.standard_normal((8, 100)), np.ones(8), np.zeros(1)
    library.in_a_body(x, y, np.full(1, 5.0), to)
    np.testing.assert_allclose(y, 1 + x.sum(1), rtol=1e-12)
    assert to == 5
    few, sums, total = random.standard_normal(20), np.arange(8.0), np.ones(())
    library.in_a_loop(few, sums)
    np.testing.assert_allclose(sums, np.arange(8) + few.sum(), rtol=1e-12)
    library.few(few, total)
    np.testing.assert_allclose(total, 1 + few.sum(), rtol=1e-12)
    assert "few_kernel" in list(library.kernels)
    assert len(emit(LINALG, "object", ALL_TARGETS)) == 3 * len(ALL_TARGETS)


CALLED_BY_LINALG = """
func.func private @four_times(%v: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.parallel (%i) = (%c0) to (%c4) step (%c1) init (%zero) -> f32 {
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %r : f32
}
func.func @turned(%x: memref<?x?xf32>, %out: memref<?x?xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : memref<?x?xf32>) outs(%out : memref<?x?xf32>) {
  ^bb0(%a: f32, %before: f32):
    %s = func.call @four_times(%a) : (f32) -> f32
    linalg.yield %s : f32
  }
  return
}
func.func @summed(%x: memref<96xf32>, %out: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<96xf32>) outs(%out : memref<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %s = func.call @four_times(%a) : (f32) -> f32
    %t = arith.addf %s, %sum : f32
    linalg.yield %t : f32
  }
  return
}
"""


@pytest.mark.parametrize("shape", [(64, 31), (64, 96), (3, 5)])
def test_functions_that_bodies_of_linalg_call(shape: tuple[int, int]) -> None:
    library = on_host(CALLED_BY_LINALG)
    x, out = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.zeros(shape[::-1], np.float32)
    library.turned(x, out)
    np.testing.assert_array_equal(out, 4 * x.T)
    total = np.zeros((), np.float32)
    library.summed(np.arange(96, dtype=np.float32), total)
    assert total == 4 * np.arange(96).sum()
