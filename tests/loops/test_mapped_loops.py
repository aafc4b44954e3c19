"""scf.forall whose loops their author maps to blocks and threads, for the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "mapped_loops.mlir"

_random = np.random.default_rng(8)
X = _random.standard_normal((19, 13)).astype(np.float32)
ROWS = _random.standard_normal((5, 16)).astype(np.float32)
A, B = _random.standard_normal((12, 32)).astype(np.float32), _random.standard_normal((32, 48)).astype(np.float32)


def check(library: offload.Library | OnDevice) -> None:
    turned = np.zeros((13, 19), np.float32)
    library.transposed(X, turned)
    np.testing.assert_array_equal(turned, X.T)
    shares, sums = np.zeros_like(ROWS), np.zeros(5, np.float32)
    library.shares(ROWS, shares, sums)
    powers = np.exp(ROWS)
    np.testing.assert_allclose(sums, powers.sum(1), rtol=1e-5)
    np.testing.assert_allclose(shares, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(library.product(A, B).numpy(), A @ B, rtol=1e-4, atol=1e-5)


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


ALONE = """
func.func @copied(%x: memref<8x4xi32>, %y: memref<8x4xi32>) {
  scf.forall (%i) in (8) {
    %from = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<8x4xi32> to memref<4xi32, strided<[1], offset: ?>>
    %to = memref.subview %y[%i, 0] [1, 4] [1, 1] : memref<8x4xi32> to memref<4xi32, strided<[1], offset: ?>>
    memref.copy %from, %to : memref<4xi32, strided<[1], offset: ?>> to memref<4xi32, strided<[1], offset: ?>>
    scf.forall (%t) in (4) {
      %v = memref.load %to[%t] : memref<4xi32, strided<[1], offset: ?>>
      %w = arith.addi %v, %v : i32
      memref.store %w, %to[%t] : memref<4xi32, strided<[1], offset: ?>>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
func.func @twice_x(%y: memref<8x8xi32>) {
  %one = arith.constant 1 : i32
  scf.forall (%i, %j) in (8, 8) {
    scf.forall (%t) in (4) {
      memref.store %one, %y[%i, %j] : memref<8x8xi32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>, #gpu.block<x>]}
  return
}
func.func private @row(%y: memref<8x8xi32>, %k: index) {
  %two = arith.constant 2 : i32
  scf.forall (%i) in (2) {
    scf.forall (%t) in (4) {
      %j = affine.apply affine_map<(a, b) -> (a * 4 + b)>(%i, %t)
      memref.store %two, %y[%k, %j] : memref<8x8xi32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
func.func @called(%y: memref<8x8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%k) = (%c0) to (%c8) step (%c1) {
    func.call @row(%y, %k) : (memref<8x8xi32>, index) -> ()
    scf.reduce
  }
  return
}
"""


def test_loops_that_are_not_as_they_seem() -> None:
    """Two dimensions for one of the grid's, and a function that threads call: what each iteration does is done."""
    library = on_host(ALONE)
    x, y, z = np.arange(32, dtype=np.int32).reshape(8, 4), np.zeros((8, 4), np.int32), np.zeros((8, 8), np.int32)
    library.copied(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    library.twice_x(z)
    np.testing.assert_array_equal(z, np.ones((8, 8)))
    library.called(z)
    np.testing.assert_array_equal(z, np.full((8, 8), 2))


def test_a_tile_that_is_too_large_for_a_block_is_each_threads() -> None:
    text = emit_text(PROGRAM.read_text().replace("8x8xf32", "128x128xf32"), "kernels")
    assert text.count("known_block_size = array<i32: 8, 8, 1>") == 0


def test_blocks_and_threads_are_the_authors() -> None:
    text = emit_text(PROGRAM, "kernels")
    assert text.count("gpu.launch_func") == 3
    assert text.count("known_block_size = array<i32: 8, 8, 1>") == 1
    assert text.count("known_block_size = array<i32: 16, 1, 1>") == 1
    assert text.count("known_block_size = array<i32: 16, 4, 1>") == 1


ALIGNED = """
func.func @f(%x: memref<8x4xf32>) {
  scf.forall (%i) in (8) {
    %tile = memref.alloc() {alignment = 256 : i64} : memref<4xf32>
    scf.forall (%t) in (4) {
      %v = memref.load %x[%i, %t] : memref<8x4xf32>
      memref.store %v, %tile[%t] : memref<4xf32>
    } {mapping = [#gpu.thread<x>]}
    scf.forall (%t) in (4) {
      %c3 = arith.constant 3 : index
      %other = arith.subi %c3, %t : index
      %v = memref.load %tile[%other] : memref<4xf32>
      memref.store %v, %x[%i, %t] : memref<8x4xf32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
"""


def test_a_tile_has_the_alignment_that_it_was_allocated_with() -> None:
    lines = emit_text(ALIGNED, "isa", ["nvvm:sm_80"]).splitlines()
    assert ".align 256 " in next(line for line in lines if ".shared" in line and "[" in line)


@pytest.mark.parametrize("chip", ["host", "gfx942", "sm_80"])
@pytest.mark.parametrize("space", ["#gpu.address_space<workgroup>", "3"])
def test_a_tile_may_say_that_it_is_of_the_block(chip: str, space: str) -> None:
    program = ALIGNED.replace("memref<4xf32>", f"memref<4xf32, {space}>")
    with running_on(chip, program) as library:
        x = np.arange(32, dtype=np.float32).reshape(8, 4)
        right = x[:, ::-1].copy()
        library.f(x)
        np.testing.assert_array_equal(x, right)
