"""Quotients of integers of few bits in AMD machine code, which tests/emulator executes."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

TARGETS = ["gfx942", "gfx942,O=1", "gfx942,O=0", "gfx1100", "gfx1201"]

EXTENDED = """
gpu.module @m { gpu.func @k(%x: memref<?xiFROM>, %y: memref<?xiFROM>, %q: memref<?xiTO>, %r: memref<?xiTO>) kernel {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xiFROM>
  %w = memref.load %y[%t] : memref<?xiFROM>
  %a = arith.extsi %v : iFROM to iTO
  %b = arith.extsi %w : iFROM to iTO
  %quotient = arith.divsi %a, %b : iTO
  memref.store %quotient, %q[%t] : memref<?xiTO>
  REST
  gpu.return
} }
"""
REST = "%rest = arith.remsi %a, %b : iTO\n  memref.store %rest, %r[%t] : memref<?xiTO>"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("start", "end"), [(8, 16), (8, 32), (8, 64), (16, 32), (16, 64), (32, 64)])
@pytest.mark.parametrize("rest", ["", REST], ids=["quotient", "quotient and remainder"])
def test_the_least_number_by_minus_one(driver: Driver, target: str, start: int, end: int, rest: str) -> None:
    """LLVM gives a quotient the bits that its operands need."""
    least = -(2 ** (start - 1))
    x = np.array([least, least, least, least + 1, -least - 1, 100, -100, 0], f"i{start // 8}")
    y = np.array([-1, 1, least, -1, -1, 7, 7, -1], x.dtype)
    q, r = (np.full(8, 77, f"i{end // 8}") for _ in range(2))
    source = EXTENDED.replace("REST", rest).replace("FROM", str(start)).replace("TO", str(end))
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(source, target)).kernels.k[1, 8](x, y, q, r)
    quotient = np.trunc(x / y.astype(np.float64)).astype(np.int64)
    np.testing.assert_array_equal(q, quotient)
    if rest:
        np.testing.assert_array_equal(r, x - quotient * y)


CONSTANT = """
gpu.module @m { gpu.func @k(%x: memref<?x2xi64>, %q: memref<?x2xi64>, %r: memref<?x2xi64>) kernel {
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %unused = arith.constant dense<UNUSED> : vector<2xi64>
  %by = arith.constant dense<BY> : vector<2xi64>
  %v = vector.load %x[%t, %c0] : memref<?x2xi64>, vector<2xi64>
  %up = arith.shli %v, %unused : vector<2xi64>
  %few = arith.shrSIGN %up, %unused : vector<2xi64>
  %quotient = arith.divSIGN %few, %by : vector<2xi64>
  %rest = arith.remSIGN %few, %by : vector<2xi64>
  vector.store %quotient, %q[%t, %c0] : memref<?x2xi64>, vector<2xi64>
  vector.store %rest, %r[%t, %c0] : memref<?x2xi64>, vector<2xi64>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("bits", "sign", "by"),
    [
        (24, "ui", [0xFFFFFF, 3]),
        (24, "ui", [0xFFFFFD, 4]),
        (24, "si", [-1, 7]),
        (8, "si", [-1, 3]),
        (32, "si", [-1, -7]),
    ],
)
def test_constants_that_no_product_divides_by(driver: Driver, target: str, bits: int, sign: str, by: list[int]) -> None:
    """By most constants of 64 bits LLVM divides as by any number."""
    most = 2 ** (bits - (sign == "si")) - 1
    x = np.stack([np.maximum(most // abs(each) * abs(each) - 1 - abs(each) * np.arange(32), 0) for each in by], 1)
    x[0] = most - 1
    if sign == "si":
        x[1::2] *= -1
        x[1] = -most - 1
    quotient = np.abs(x) // np.abs(by) * np.sign(x) * np.sign(by)
    q, r = np.zeros_like(x), np.zeros_like(x)
    source = CONSTANT.replace("UNUSED", str(64 - bits)).replace("BY", str(by)).replace("SIGN", sign)
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(source, target)).kernels.k[1, 32](x, q, r)
    np.testing.assert_array_equal(q, quotient)
    np.testing.assert_array_equal(r, x - quotient * by)
