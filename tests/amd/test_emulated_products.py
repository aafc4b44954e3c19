"""Products of matrices by AMD's matrix units, on emulated devices against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

from offload.errors import DeviceError

# One wave; each lane gives the elements that the instruction takes from it, and stores those that it gets.
MFMA = """
gpu.module @m {{ gpu.func @k(
    %a: memref<?x{per}x{kind}>, %b: memref<?x{per}x{kind}>, %c: memref<?x{results}xf32>) kernel {{
  %t = gpu.thread_id x
  %zero = arith.constant 0 : index
  %x = vector.load %a[%t, %zero] : memref<?x{per}x{kind}>, vector<{per}x{kind}>
  %y = vector.load %b[%t, %zero] : memref<?x{per}x{kind}>, vector<{per}x{kind}>
  %z = vector.load %c[%t, %zero] : memref<?x{results}xf32>, vector<{results}xf32>
  %d = amdgpu.mfma {size}x{size}x{depth} %x * %y + %z {{ abid = 0 : i32, cbsz = 0 : i32, blocks = 1 : i32 }} blgp = none
    : vector<{per}x{kind}>, vector<{per}x{kind}>, vector<{results}xf32>
  vector.store %d, %c[%t, %zero] : memref<?x{results}xf32>, vector<{results}xf32>
  gpu.return
}} }}
"""


@pytest.mark.parametrize(("size", "depth", "per"), [(16, 16, 4), (32, 8, 4)])
def test_mfma(driver: Driver, size: int, depth: int, per: int) -> None:
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-4, 5, (size, depth)).astype(np.float16) for _ in range(2))
    c = generator.integers(-9, 9, (size, size)).astype(np.float32)
    lane = np.arange(64)
    k = per * (lane // size)[:, None] + np.arange(per)
    results = size * size // 64
    register = np.arange(results)
    row = 4 * (lane // size)[:, None] + 256 // size // 4 * 4 * (register // 4) * (size // 16) + register % 4
    if size == 32:
        row = 8 * (register // 4) + 4 * (lane // 32)[:, None] + register % 4
    column = (lane % size)[:, None]
    spread = c[row, column].copy()
    source = MFMA.format(per=per, kind="f16", results=results, size=size, depth=depth)
    with driver.chip("gfx942"):
        kernels = OnDevice(compiled(source, "gfx942")).kernels
        kernels.k[1, 64](a[lane[:, None] % size, k].copy(), b[lane[:, None] % size, k].copy(), spread)
    product = a.astype(np.float32) @ b.astype(np.float32).T + c
    np.testing.assert_array_equal(spread, product[row, column])


@pytest.mark.parametrize("kind", ["bf16", "i8"])
def test_mfma_of_gfx90a_alone(driver: Driver, kind: str) -> None:
    """Its numbers of these instructions are others' for other products."""
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-4, 5, (16, 16)) for _ in range(2))
    lane, register = np.arange(64)[:, None], np.arange(4)
    k, row = 4 * (lane // 16) + np.arange(4), 4 * (lane // 16) + register
    spread = np.zeros((64, 4), np.float32 if kind == "bf16" else np.int32)
    source = MFMA.format(per=4, kind=kind, results=4, size=16, depth=16)

    def stored(values: np.ndarray) -> np.ndarray:
        values = values[lane % 16, k]
        return values.astype(np.int8) if kind == "i8" else values.astype(ml_dtypes.bfloat16)

    if kind == "i8":
        source = source.replace("f32", "i32")
    with driver.chip("gfx90a"):
        OnDevice(compiled(source, "gfx90a")).kernels.k[1, 64](stored(a), stored(b), spread)
    np.testing.assert_array_equal(spread, (a @ b.T)[row, lane % 16])


@pytest.mark.parametrize(("chip", "kept"), [("gfx90a", 0), ("gfx942", 1), ("gfx950", 1)])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_subnormal_factors_of_mfma(driver: Driver, chip: str, kept: int, kind: str) -> None:
    """gfx90a takes those of halves for zero, and sums too."""
    dtype, least = {"f16": (np.float16, 2.0**-15), "bf16": (ml_dtypes.bfloat16, 2.0**-130)}[kind]
    a, b = np.full((64, 4), least, dtype), np.full((64, 4), 2.0 if kind == "f16" else 2.0**100, dtype)
    c = np.array([1e-40, 0, least, -1e-40], np.float32) * np.ones((64, 1), np.float32)
    wanted = (c + 16 * a[0, 0].astype(np.float32) * b[0, 0].astype(np.float32)) * kept
    if not kept and kind == "f16":
        wanted[:, 2] = least  # a normal number of f32
    with driver.chip(chip):
        kernels = OnDevice(compiled(MFMA.format(per=4, kind=kind, results=4, size=16, depth=16), chip)).kernels
        kernels.k[1, 64](a, b, c)
    np.testing.assert_array_equal(c, wanted)


WMMA = """
gpu.module @m {{ gpu.func @k(%a: memref<?x{per}xf16>, %b: memref<?x{per}xf16>, %c: memref<?x8xf32>) kernel {{
  %t = gpu.thread_id x
  %zero = arith.constant 0 : index
  %x = vector.load %a[%t, %zero] : memref<?x{per}xf16>, vector<{per}xf16>
  %y = vector.load %b[%t, %zero] : memref<?x{per}xf16>, vector<{per}xf16>
  %z = vector.load %c[%t, %zero] : memref<?x8xf32>, vector<8xf32>
  %d = amdgpu.wmma 16x16x16 %x * %y + %z : vector<{per}xf16>, vector<{per}xf16>, vector<8xf32>
  vector.store %d, %c[%t, %zero] : memref<?x8xf32>, vector<8xf32>
  gpu.return
}} }}
"""


@pytest.mark.parametrize(("chip", "per"), [("gfx1100", 16), ("gfx1201", 8)])
def test_wmma(driver: Driver, chip: str, per: int) -> None:
    generator = np.random.default_rng(4)
    a, b = (generator.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    c = generator.integers(-9, 9, (16, 16)).astype(np.float32)
    lane, register = np.arange(32)[:, None], np.arange(8)
    row = 2 * register + lane // 16 if chip == "gfx1100" else 8 * (lane // 16) + register
    k = np.arange(16) if chip == "gfx1100" else 8 * (lane // 16) + np.arange(8)
    spread = c[row, lane % 16].copy()
    with driver.chip(chip):
        kernels = OnDevice(compiled(WMMA.format(per=per), chip)).kernels
        kernels.k[1, 32](a[lane % 16, k].copy(), b[lane % 16, k].copy(), spread)
    product = a.astype(np.float32) @ b.astype(np.float32).T + c
    np.testing.assert_array_equal(spread, product[row, lane % 16])


def test_wmma_of_lanes_that_differ(driver: Driver) -> None:
    """gfx11 has A and B in lanes 0 to 15 and again in the others, all of which take part."""
    a, b, c = np.ones((32, 16), np.float16), np.ones((32, 16), np.float16), np.zeros((32, 8), np.float32)
    with driver.chip("gfx1100"):
        kernels = OnDevice(compiled(WMMA.format(per=16), "gfx1100")).kernels
        kernels.k[1, 32](a, b, c)
        np.testing.assert_array_equal(c, 16)
        with pytest.raises(DeviceError):
            kernels.k[1, 31](a, b, c)
        assert "not all lanes are active" in str(driver.failures.pop())
        b[20, 3] = 2
        with pytest.raises(DeviceError):
            kernels.k[1, 32](a, b, c)
        assert "every 16 lanes hold alike" in str(driver.failures.pop())


@pytest.mark.parametrize(("chip", "per"), [("gfx1100", 16), ("gfx1201", 8)])
@pytest.mark.parametrize("clamp", [True, False])
def test_sums_of_integers_at_their_limit(driver: Driver, chip: str, per: int, clamp: bool) -> None:
    source = WMMA.format(per=per).replace("f16>", "i8>").replace("f32>", "i32>")
    source = source.replace("+ %z", "+ %z { clamp }") if clamp else source
    ones, limit = np.ones((32, per), np.int8), np.int32(2**31 - 1)
    c = np.full((32, 8), limit - 5, np.int32)
    with driver.chip(chip):
        OnDevice(compiled(source, chip)).kernels.k[1, 32](ones, ones, c)
    np.testing.assert_array_equal(c, limit if clamp else 10 - limit - 1)


CONSTANT = """
gpu.module @m {{ gpu.func @k(%out: memref<?x{results}x{kind}>) kernel {{
  %t = gpu.thread_id x
  %zero = arith.constant 0 : index
  %a = arith.constant {two}
  %c = arith.constant dense<1.0> : vector<{results}x{kind}>
  %d = amdgpu.{product}, vector<{results}x{kind}>
  vector.store %d, %out[%t, %zero] : memref<?x{results}x{kind}>, vector<{results}x{kind}>
  gpu.return
}} }}
"""
F64 = "mfma 16x16x4 %a * %a + %c { abid = 0 : i32, cbsz = 0 : i32, blocks = 1 : i32 } blgp = none : f64, f64"
F16 = "wmma 16x16x16 %a * %a + %c : vector<8xf16>, vector<8xf16>"


@pytest.mark.parametrize(
    ("chip", "kind", "lanes", "results", "two", "product", "sum_"),
    [
        ("gfx90a", "f64", 64, 4, "2.0 : f64", F64, 17),
        ("gfx942", "f64", 64, 4, "2.0 : f64", F64, 17),
        ("gfx1201", "f16", 32, 8, "dense<2.0> : vector<8xf16>", F16, 65),
    ],
)
def test_matrices_of_one_constant(
    driver: Driver, chip: str, kind: str, lanes: int, results: int, two: str, product: str, sum_: int
) -> None:
    """A constant in the instruction is each element, whatever its size."""
    out = np.zeros((lanes, results), {"f64": np.float64, "f16": np.float16}[kind])
    with driver.chip(chip):
        source = CONSTANT.format(results=results, kind=kind, two=two, product=product)
        OnDevice(compiled(source, chip)).kernels.k[1, lanes](out)
    np.testing.assert_array_equal(out, sum_)
