"""Denormal numbers in AMD machine code, which tests/emulator executes: what `daz` flushes, what always is."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.denormals import check_mode
from emulator.errors import EmulationError
from emulator.running import running_on

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
OPERATIONS = {
    "arith.addf %v, %w": np.add,
    "arith.subf %v, %w": np.subtract,
    "arith.mulf %v, %w": np.multiply,
    "arith.maximumf %v, %w": np.maximum,
    "arith.divf %v, %w": np.divide,
    "math.fma %v, %w, %w": lambda v, w: v.astype(np.float64) * w + w,
    "math.fma %w, %w, %v": lambda v, w: w.astype(np.float64) * w + v,
    "math.sqrt %v": lambda v, w: np.sqrt(v),
}
STEPS = "".join(
    f"%r{place} = {operation} : f32\nmemref.store %r{place}, %out[%t, %c{place}] : memref<?x8xf32>\n"
    for place, operation in enumerate(OPERATIONS)
)
SOURCE = f"""
gpu.module @m {{ gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>, %out: memref<?x8xf32>) kernel {{
  {"".join(f"%c{place} = arith.constant {place} : index{chr(10)}" for place in range(8))}
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf32>
  %w = memref.load %y[%t] : memref<?xf32>
  {STEPS}
  gpu.return
}} }}
"""
X = np.array([1e-40, -1e-40, 3e-38, 1e-38, 1.5, 2e-38, -2e-38, 1e-45], np.float32)
Y = np.array([1.0, 1e-40, 2e-38, 3e38, 1e-39, 0.25, 1.9e-38, 1e-45], np.float32)


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


@pytest.mark.parametrize("daz", ["", ",daz", ",daz,fast"])
@pytest.mark.parametrize("chip", CHIPS)
def test_operations(chip: str, daz: str) -> None:
    """What the option flushes, operands and results, and nothing without it."""
    out = np.ones((X.size, 8), np.float32)
    with running_on(chip + daz, SOURCE) as there:
        there.kernels.k[1, X.size](X, Y, out)
    for place, function in enumerate(OPERATIONS.values()):
        with np.errstate(all="ignore"):
            x, y = (flushed(X), flushed(Y)) if daz else (X, Y)
            wanted = np.asarray(function(x, y)).astype(np.float32)
        wanted = flushed(wanted) if daz else wanted
        np.testing.assert_array_max_ulp(out[:, place], wanted, 2 if "fast" in daz else 0)


ESTIMATES = """
gpu.module @m { gpu.func @k(%x: memref<?xf32>, %out: memref<?x4xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf32>
  %a = rocdl.rcp %v f32 -> f32
  %b = rocdl.log %v f32 -> f32
  %c = rocdl.exp2 %v f32 -> f32
  %d = rocdl.sin %v f32 -> f32
  memref.store %a, %out[%t, %c0] : memref<?x4xf32>
  memref.store %b, %out[%t, %c1] : memref<?x4xf32>
  memref.store %c, %out[%t, %c2] : memref<?x4xf32>
  memref.store %d, %out[%t, %c3] : memref<?x4xf32>
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_estimates(chip: str) -> None:
    """They know no denormal numbers in any mode, and sines no more than 256 turns."""
    x = np.array([1e-40, 2.0**127, -130, -256.25, 300.25], np.float32)
    out = np.ones((5, 4), np.float32)
    with running_on(chip, ESTIMATES) as there:
        there.kernels.k[1, 5](x, out)
    np.testing.assert_array_equal(out[:3, 0], [np.inf, 0, np.float32(1) / np.float32(-130)])
    np.testing.assert_array_equal(out[:2, 1], [-np.inf, 127])
    np.testing.assert_array_equal(out[[0, 2], 2], [1, 0])
    np.testing.assert_array_equal(out[3:, 3], [0, 0])


@pytest.mark.parametrize("mode", [0xD0, 0xE0, 0x30, 0xF1])
def test_modes_that_are_not_known(mode: int) -> None:
    check_mode(0xF0)
    check_mode(0xC0)
    with pytest.raises(EmulationError, match="mode"):
        check_mode(mode)


UNIFORM = """
gpu.module @m { gpu.func @k(%v: f32, %w: f32, %out: memref<?xf32>) kernel {
  %t = gpu.thread_id x
  %a = arith.addf %v, %w : f32
  %b = arith.mulf %a, %w : f32
  memref.store %b, %out[%t] : memref<?xf32>
  gpu.return
} }
"""


@pytest.mark.parametrize("daz", ["", ",daz"])
def test_scalar_operations(daz: str) -> None:
    """What all threads have alike gfx12 computes once."""
    out = np.ones(2, np.float32)
    with running_on(f"gfx1201{daz}", UNIFORM) as there:
        there.kernels.k[1, 2](3e-38, -2.9e-38, out)
    v, w = np.float32(3e-38), np.float32(-2.9e-38)
    np.testing.assert_array_equal(out, (flushed(v + w) if daz else v + w) * w)


DOT = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>, %y: memref<?xf32>) kernel {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xi32>
  %w = memref.load %y[%t] : memref<?xf32>
  %one = arith.constant 0x3C003C00 : i32
  %r = llvm.inline_asm "v_dot2_f32_f16 $0, $1, $2, $3", "=v,v,v,v" %v, %one, %w : (i32, i32, f32) -> f32
  memref.store %r, %y[%t] : memref<?xf32>
  gpu.return
} }
"""


@pytest.mark.parametrize(("chip", "kept"), [("gfx90a", 0), ("gfx942", 1)])
def test_sums_of_two_halves(chip: str, kept: int) -> None:
    x = np.array([[2**-15, 2**-14], [2**-15, 2**-16], [0, 0]], np.float16)
    y = np.array([1, 0, 1e-40], np.float32)
    wanted = np.array([1 + 2**-14 + kept * 2**-15, kept * (2**-15 + 2**-16), kept * y[2]], np.float32)
    with running_on(chip, DOT) as there:
        there.kernels.k[1, 3](x.view(np.int32).reshape(-1), y)
    np.testing.assert_array_equal(y, wanted)
