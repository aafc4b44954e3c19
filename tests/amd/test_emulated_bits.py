"""Integers in AMD machine code, of which LLVM 22 would take other bits than the program; tests/emulator executes it."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]

PRODUCTS = """
gpu.module @m { gpu.func @k(%x: memref<?xi64>, %y: memref<?xi64>, %out: memref<?x3xi64>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : i64
  %mask = arith.constant 0xffffff : i64
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xi64>
  %w = memref.load %y[%t] : memref<?xi64>
  %masked = arith.andi %v, %mask : i64
  %p = arith.muli %masked, %three : i64
  %a = arith.addi %w, %p : i64
  %masked2 = arith.andi %w, %mask : i64
  %p2 = arith.muli %masked, %masked2 : i64
  %b = arith.addi %v, %p2 : i64
  %rest = arith.remui %v, %three : i64
  %p3 = arith.muli %rest, %three : i64
  %c = arith.addi %w, %p3 : i64
  memref.store %a, %out[%t, %zero] : memref<?x3xi64>
  memref.store %b, %out[%t, %one] : memref<?x3xi64>
  memref.store %c, %out[%t, %two] : memref<?x3xi64>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", [*CHIPS, "gfx942,O=0", "gfx1100,wave64"])
def test_products_of_masked_numbers_that_are_added_to_wide_ones(driver: Driver, target: str) -> None:
    """Products of 24 bits need no mask, until one instruction adds 64 bits to them (v_mad_u64_u32)."""
    x = np.array([-1, 5, 0x7654321FEDCBA987, -(2**63), 0xFFFFFFFF, 2**40 + 3], np.int64)
    y = np.array([0, -7, 2**33, 2**62 + 1, 0x55AAFFFFFF, 12], np.int64)
    out = np.zeros((6, 3), np.int64)
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(PRODUCTS, target)).kernels.k[1, 6](x, y, out)
    masked = x & 0xFFFFFF
    rest = (x.astype(np.uint64) % np.uint64(3)).astype(np.int64)
    np.testing.assert_array_equal(out, np.stack([y + masked * 3, x + masked * (y & 0xFFFFFF), y + rest * 3], axis=1))


CHOSEN = """
gpu.module @m { gpu.func @k(%n: i32, %out: memref<?xi64>) kernel {
  %zero = arith.constant 0 : index
  %bit = arith.constant 1 : i32
  %new = arith.constant 2 : i64
  %old = arith.constant dense<[-9223372036854775808, -9223372036854775808]> : vector<2xi64>
  %last = arith.andi %n, %bit : i32
  %i = arith.index_cast %last : i32 to index
  %v = vector.insert %new, %old[%i] : i64 into vector<2xi64>
  vector.store %v, %out[%zero] : memref<?xi64>, vector<2xi64>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", [*CHIPS, "gfx90a,O=1", "gfx1201,wave64"])
def test_a_bit_that_is_compared_twice(driver: Driver, target: str) -> None:
    """Each element asks whether the bit says that it is the one; both took the answer of the last."""
    with driver.chip(target.split(",")[0]):
        library = OnDevice(compiled(CHOSEN, target))
        for n in (0, 1, 6, 7):
            out = np.zeros(2, np.int64)
            library.kernels.k[1, 1](np.int32(n), out)
            want = np.full(2, -(2**63))
            want[n & 1] = 2
            np.testing.assert_array_equal(out, want)


BRANCH = """
gpu.module @m { gpu.func @k(%x: f32, %a: i32, %b: i32, %out: memref<2xi32>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %number = arith.constant 1.0 : f32
  %limit = arith.constant 4.0 : f32
  %sum = arith.addf %x, %number : f32
  %less = arith.cmpf olt, %sum, %limit : f32
  %chosen = arith.select %less, %a, %b : i32
  cf.cond_br %less, ^both, ^more
^more:
  memref.store %chosen, %out[%zero] : memref<2xi32>
  cf.br ^both
^both:
  memref.store %chosen, %out[%one] : memref<2xi32>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", [*CHIPS, "gfx90a,O=1", "gfx1100,wave64"])
def test_a_comparison_of_floats_that_chooses_a_branch_and_a_number(driver: Driver, target: str) -> None:
    """The instruction whose condition chooses the number was taken for one that the branch alone needed."""
    with driver.chip(target.split(",")[0]):
        library = OnDevice(compiled(BRANCH, target))
        for x in (2.0, 5.0):
            out = np.zeros(2, np.int32)
            library.kernels.k[1, 1](np.float32(x), np.int32(7), np.int32(9), out)
            np.testing.assert_array_equal(out, [0, 7] if x < 3 else [9, 9])


IDLE = """
gpu.module @m {{ gpu.func @k(%x: memref<?x{kind}>, %out: memref<?x{kind}>) kernel {{
  %none = arith.constant {none} : {kind}
  %t = gpu.thread_id x
  %old = memref.atomic_rmw {operation} %none, %x[%t] : ({kind}, memref<?x{kind}>) -> {kind}
  memref.store %old, %out[%t] : memref<?x{kind}>
  gpu.return
}} }}
"""


@pytest.mark.parametrize("kind", ["i8", "i16", "i32"])
@pytest.mark.parametrize(("operation", "none"), [("addi", 0), ("ori", 0), ("andi", -1), ("maxu", 0)])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_atomic_operations_that_change_nothing(driver: Driver, chip: str, operation: str, none: int, kind: str) -> None:
    x = np.arange(-30, 34).astype({"i8": np.int8, "i16": np.int16, "i32": np.int32}[kind])
    there, out = x.copy(), np.ones_like(x)
    with driver.chip(chip):
        library = compiled(IDLE.format(kind=kind, operation=operation, none=none), chip)
        OnDevice(library).kernels.k[1, 64](there, out)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(there, x)
