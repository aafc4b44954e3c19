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
  %r = amdgpu.{exchange} : vector<{count}x{kind}>
  vector.store %r, %out[%t, %zero] : memref<?x{count}x{kind}>, vector<{count}x{kind}>
  gpu.return
}} }}
"""
SWIZZLE, ROWS = "swizzle_bitmode %v 15 2 5", "permlane_swap %v 16"


@pytest.mark.parametrize(("kind", "count"), [("f16", 3), ("bf16", 5), ("i8", 5), ("i8", 3), ("i16", 9), ("i32", 3)])
@pytest.mark.parametrize(
    ("chip", "exchange"), [("gfx942", SWIZZLE), ("gfx1100", SWIZZLE), ("gfx1201", SWIZZLE), ("gfx950", ROWS)]
)
def test_exchanges(driver: Driver, chip: str, exchange: str, kind: str, count: int) -> None:
    lanes, lane = 32, np.arange(32)
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(kind) or np.dtype(kind.replace("i", "int"))
    x, out = np.arange(lanes * count).reshape(lanes, count).astype(dtype), np.zeros((lanes, count), dtype)
    source = EXCHANGE.format(count=count, kind=kind, exchange=exchange)
    with driver.chip(chip):
        OnDevice(compiled(source, chip)).kernels.k[1, lanes](x, out)
    other = lane ^ 16 if exchange == ROWS else lane & ~31 | (lane & 15 | 2) ^ 5
    np.testing.assert_array_equal(out.astype(np.float32), x[other].astype(np.float32))
