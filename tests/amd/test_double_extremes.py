"""Minima and maxima of f64 on AMD GPUs, most of which have no instruction that is NaN where an operand is."""

from __future__ import annotations

import time

import numpy as np
import pytest
from compiling import emit
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

CHIPS = ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx9-4-generic"]
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 5e-324, -5e-324, 1.7e308]

PAIRS = """
gpu.module @m { gpu.func @k(%x: memref<?xf64>, %y: memref<?xf64>, %out: memref<?x4xf64>) kernel {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf64>
  %w = memref.load %y[%t] : memref<?xf64>
  %both = vector.from_elements %v, %w : vector<2xf64>
  %other = vector.from_elements %w, %v : vector<2xf64>
  %most = arith.maximumf %both, %other : vector<2xf64>
  %a = vector.extract %most[0] : f64 from vector<2xf64>
  %b = arith.minimumf %v, %w : f64
  %c = arith.maximumf %v, %zero : f64
  %less = arith.negf %zero : f64
  %d = arith.minimumf %less, %v : f64
  %all = vector.from_elements %a, %b, %c, %d : vector<4xf64>
  vector.store %all, %out[%t, %c0] : memref<?x4xf64>, vector<4xf64>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx942,O=0", "gfx950", "gfx1100", "gfx1201"])
def test_nan_and_signs_of_zeros(driver: Driver, target: str) -> None:
    x, y = (each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL))
    x[0], y[1] = np.array([0x7FF0000000000001, 0xFFF0000000000001], np.uint64).view(np.float64)  # signalling
    out = np.zeros((len(x), 4))
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(PAIRS, target)).kernels.k[1, len(x)](x, y, out)
    for column, (left, right), function in zip(
        out.T, [(x, y), (x, y), (x, np.zeros_like(x)), (x, -np.zeros_like(x))], [max, min] * 2, strict=True
    ):
        # Of zeros, the negative one is the smaller.
        want = np.array(
            [function((a, not np.signbit(a)), (b, not np.signbit(b)))[0] for a, b in zip(left, right, strict=True)]
        )
        want[np.isnan(left) | np.isnan(right)] = np.nan
        np.testing.assert_array_equal(column, want)
        there = ~np.isnan(column)
        np.testing.assert_array_equal(np.signbit(column[there]), np.signbit(want)[there])


REDUCTIONS = """
gpu.module @m { gpu.func @k(%x: memref<?xNxf64>, %out: memref<?x3xf64>) kernel {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f64
  %t = gpu.thread_id x
  %v = vector.load %x[%t, %c0] : memref<?xNxf64>, vector<Nxf64>
  %a = vector.reduction <maximumf>, %v : vector<Nxf64> into f64
  %b = vector.reduction <minimumf>, %v : vector<Nxf64> into f64
  %c = vector.reduction <maximumf>, %v, %half : vector<Nxf64> into f64
  %all = vector.from_elements %a, %b, %c : vector<3xf64>
  vector.store %all, %out[%t, %c0] : memref<?x3xf64>, vector<3xf64>
  gpu.return
} }
"""


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942,O=0", "gfx1100", "gfx1201"])
def test_reductions(driver: Driver, target: str, width: int) -> None:
    x = np.random.default_rng(width).choice(SPECIAL, (256, width))
    x[0, -1] = np.array(0x7FF0000000000001, np.uint64).view(np.float64)  # signalling
    out = np.zeros((len(x), 3))
    with driver.chip(target.split(",")[0]):
        OnDevice(compiled(REDUCTIONS.replace("N", str(width)), target)).kernels.k[1, len(x)](x, out)
    ordered = [sorted(row, key=lambda value: (value, not np.signbit(value))) for row in x]
    want = np.array([(row[-1], row[0], max(row[-1], 0.5)) for row in ordered])
    want[np.isnan(x).any(axis=1)] = np.nan
    np.testing.assert_array_equal(out, want)
    there = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(out[there]), np.signbit(want[there]))


def chain(step: str, operation: str, number: int) -> str:
    """Numbers each of which is made of the one before in two ways."""
    lines = "".join(
        f"  %m{k} = {step.format(k)} : f64\n  %v{k + 1} = arith.{operation} %m{k}, %v{k} : f64\n" for k in range(number)
    )
    return f"""gpu.module @m {{ gpu.func @k(%x: memref<?xf64>) kernel {{
  %t = gpu.thread_id x
  %c = arith.constant 1.5 : f64
  %v0 = memref.load %x[%t] : memref<?xf64>
{lines}  memref.store %v{number}, %x[%t] : memref<?xf64>
  gpu.return
}} }}"""


STEPS = {
    "arith.mulf %v{}, %c": np.multiply,
    "arith.addf %v{}, %c": np.add,
    "arith.mulf %v{}, %c fastmath<nnan>": np.multiply,
}


@pytest.mark.parametrize("operation", ["maximumf", "minimumf"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("chip", CHIPS)
def test_time(chip: str, step: str, operation: str) -> None:
    """LLVM goes each way by itself, and each step took four times as long as the one before."""

    def took(number: int) -> float:
        begin = time.process_time()
        emit(chain(step, operation, number), "isa", targets=[f"rocdl:{chip}"], cache=False)
        return time.process_time() - begin

    took(2)
    assert took(12) < 10 * min(took(2) for _ in range(2))


@pytest.mark.parametrize("chip", CHIPS)
def test_time_of_reductions(chip: str) -> None:
    """LLVM makes minima and maxima of reductions late: six of these took a quarter of a minute."""
    lines = "".join(
        f"""  %m{k} = arith.mulf %v{k}, %c : f64
  %w{k} = vector.from_elements %m{k}, %v{k}, %m{k}, %v{k} : vector<4xf64>
  %v{k + 1} = vector.reduction <maximumf>, %w{k} : vector<4xf64> into f64
"""
        for k in range(8)
    )
    text = chain("", "", 0).replace("  memref.store %v0", f"{lines}  memref.store %v8")
    begin = time.process_time()
    emit(text, "isa", targets=[f"rocdl:{chip}"], cache=False)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("operation", ["maximumf", "minimumf"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
def test_numbers_of_a_chain(driver: Driver, chip: str, step: str, operation: str) -> None:
    x = np.array([1.0, -1.0, np.inf, 0.25, -0.0, -3.5])
    want = x.copy()
    for _ in range(30):
        function = np.maximum if operation == "maximumf" else np.minimum
        want = function(STEPS[step](want, 1.5), want)
    with driver.chip(chip):
        OnDevice(compiled(chain(step, operation, 30), chip)).kernels.k[1, len(x)](x)
    np.testing.assert_array_equal(x, want)
