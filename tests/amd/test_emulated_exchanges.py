"""AMD's own exchanges between lanes, on emulated devices: values that are not whole words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

EXCHANGE = """
gpu.module @m {{ gpu.func @k(%x: memref<?x{count}x{kind}>, %out: memref<?x{count}x{kind}>) kernel {{
  %zero = arith.constant 0 : index
  %t = gpu.thread_id x
  %v = vector.load %x[%t, %zero] : memref<?x{count}x{kind}>, vector<{count}x{kind}>
  %r = {exchange} : vector<{count}x{kind}>
  vector.store %r, %out[%t, %zero] : memref<?x{count}x{kind}>, vector<{count}x{kind}>
  gpu.return
}} }}
"""
SWIZZLE, ROWS = "amdgpu.swizzle_bitmode %v 15 2 5", "amdgpu.permlane_swap %v 16"
MIRROR = "amdgpu.dpp %v %v row_mirror"
OTHERS = {
    SWIZZLE: lambda lane: lane & ~31 | (lane & 15 | 2) ^ 5,
    ROWS: lambda lane: lane ^ 16,
    MIRROR: lambda lane: lane ^ 15,
}


@pytest.mark.parametrize(("kind", "count"), [("f16", 3), ("bf16", 5), ("i8", 5), ("i8", 3), ("i16", 9), ("i32", 3)])
@pytest.mark.parametrize(
    ("chip", "exchange"),
    [
        ("gfx942", SWIZZLE),
        ("gfx1100", SWIZZLE),
        ("gfx1201", SWIZZLE),
        ("gfx950", ROWS),
        ("gfx942", MIRROR),
        ("gfx1100", MIRROR),
    ],
)
def test_exchanges(driver: Driver, chip: str, exchange: str, kind: str, count: int) -> None:
    lanes, lane = 32, np.arange(32)
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(kind) or np.dtype(kind.replace("i", "int"))
    x, out = np.arange(lanes * count).reshape(lanes, count).astype(dtype), np.zeros((lanes, count), dtype)
    source = EXCHANGE.format(count=count, kind=kind, exchange=exchange)
    with driver.chip(chip):
        OnDevice(compiled(source, chip)).kernels.k[1, lanes](x, out)
    other = OTHERS[exchange](lane)
    np.testing.assert_array_equal(out.astype(np.float32), x[other].astype(np.float32))


NUMBERS = """
gpu.module @m {{ gpu.func @k(%x: memref<?xi64>, %out: memref<?xi64>) kernel {{
  %t = gpu.thread_id x
  %four = arith.constant 4 : i64
  %seven = arith.constant 7 : i32
  %w = memref.load %x[%t] : memref<?xi64>
  %o = {make} %four : i64 to {kind}
  %v = {make} %w : i64 to {kind}
  %r = {exchange}
  %q = {back} %r : {kind} to i64
  memref.store %q, %out[%t] : memref<?xi64>
  gpu.return
}} }}
"""


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("kind", ["i1", "i5", "i24", "i48", "i128", "index", "f16", "f64"])
def test_numbers_that_are_no_registers(driver: Driver, kind: str, chip: str) -> None:
    """amdgpu.dpp of any number: what it shifts in from outside of a row is the other operand."""
    make, back = {"index": ("arith.index_cast",) * 2, "i128": ("arith.extsi", "arith.trunci")}.get(
        kind, ("arith.sitofp", "arith.fptosi") if kind[0] == "f" else ("arith.trunci", "arith.extsi")
    )
    exchange = f"amdgpu.dpp %o %v row_shl ( 1 : i32 ) : {kind}"
    lane = np.arange(32)
    x, out = (lane % 16 - 8) % (2 if kind == "i1" else 16) - (0 if kind == "i1" else 8), np.zeros(32, np.int64)
    with driver.chip(chip):
        source = NUMBERS.format(kind=kind, make=make, back=back, exchange=exchange)
        OnDevice(compiled(source, chip)).kernels.k[1, 32](x, out)
    want = np.where(lane % 16 == 15, 4, np.roll(x, -1))
    if kind == "i1":
        want = -(want & 1)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("exchange", ["rocdl.readfirstlane %v : {}", "rocdl.readlane %v, %l : ({}, i32) -> {}"])
@pytest.mark.parametrize(
    ("kind", "count"), [("i8", 2), ("i8", 3), ("i8", 4), ("f16", 1), ("f16", 2), ("i16", 3), ("f64", 2)]
)
def test_vectors_of_one_lane(driver: Driver, kind: str, count: int, exchange: str, chip: str) -> None:
    vector = f"vector<{count}x{kind}>"
    text = f"%l = arith.constant 0 : i32\n%r = {exchange.format(vector, vector)}"
    source = EXCHANGE.replace("%r = {exchange} : vector<{count}x{kind}>", text).format(count=count, kind=kind)
    x = np.arange(32 * count).reshape(32, count).astype(kind.replace("i", "int").replace("f", "float"))
    out = np.zeros_like(x)
    with driver.chip(chip):
        OnDevice(compiled(source, chip)).kernels.k[1, 32](x, out)
    np.testing.assert_array_equal(out, np.broadcast_to(x[0], x.shape))
