"""Whole artifacts on emulated AMD devices: the examples, printf, memory and numbers, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import EXAMPLES
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled
from operations import device_gpu_prints as prints

from offload.errors import DeviceError

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@pytest.mark.parametrize("chip", [*CHIPS, "gfx1100,wave64", "gfx1201,wave64"])
def test_saxpy(driver: Driver, chip: str) -> None:
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    y = x[::-1].copy()
    with driver.chip(chip.split(",")[0]):
        before = driver.instructions
        OnDevice(compiled(EXAMPLES / "saxpy.mlir", chip)).saxpy(np.float32(2.5), x, y)
        assert driver.instructions > before
    np.testing.assert_allclose(y, np.float32(2.5) * x + x[::-1], rtol=1e-6)


@pytest.mark.parametrize("chip", CHIPS)
def test_the_other_examples(driver: Driver, chip: str) -> None:
    generator = np.random.default_rng(2)
    x, w, out = (generator.standard_normal(shape).astype(np.float32) for shape in ((21, 18), (18, 35), (21, 35)))
    bias, numbers = w[0].copy(), generator.standard_normal(1000).astype(np.float32)
    with driver.chip(chip):
        sums = np.zeros(4, np.float32)
        OnDevice(compiled(EXAMPLES / "reduce.mlir", chip)).block_sums(numbers, sums)
        np.testing.assert_allclose(sums, np.add.reduceat(numbers, [0, 256, 512, 768]), rtol=1e-4, atol=1e-4)
        turned = np.zeros((35, 18), np.float32)
        OnDevice(compiled(EXAMPLES / "transpose.mlir", chip)).transpose(w, turned)
        np.testing.assert_array_equal(turned, w.T)
        scaled = w.copy()
        OnDevice(compiled(EXAMPLES / "scale.mlir", chip)).scale(np.float32(3), scaled)
        np.testing.assert_array_equal(scaled, w * np.float32(3))
        OnDevice(compiled(EXAMPLES / "linear.mlir", chip)).linear_relu(x, w, bias, out)
        np.testing.assert_allclose(out, np.maximum(x @ w + bias, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chip", CHIPS)
def test_printf(driver: Driver, chip: str) -> None:
    """Through AMD's device libraries: packets, a doorbell, an interrupt, the host's answer."""
    with driver.chip(chip):
        driver.output = ""
        OnDevice(compiled(prints.THREADS, chip)).kernels.k[2, 3]()
        lines = [f"block {block} thread {thread} of 3" for block in range(2) for thread in range(3)]
        assert sorted(driver.output.splitlines()) == lines
        driver.output = ""
        OnDevice(compiled(prints.KINDS, chip)).kernels.k[1, 1]()
        assert driver.output.splitlines() == [
            "1 -5 -300 -70000 -5000000000 6000000000 0.500000 1.500000 2.500000 0.001",
            "251 251 65236",
            "-112 ee90 65236",
            "-70000 -5 6000000000 fed4",
        ]


ASSERTION = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>) kernel {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xi32>
  %zero = arith.constant 0 : i32
  %ok = arith.cmpi sge, %v, %zero : i32
  cf.assert %ok, "negative"
  memref.store %zero, %x[%t] : memref<?xi32>
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_assertions(driver: Driver, chip: str) -> None:
    with driver.chip(chip):
        driver.output = ""
        library = OnDevice(compiled(ASSERTION, chip))
        x = np.arange(5, dtype=np.int32)
        library.kernels.k[1, 5](x)
        assert not x.any()
        with pytest.raises(DeviceError):
            library.kernels.k[1, 5](np.arange(-1, 4, dtype=np.int32))
        assert "negative" in driver.output
        assert "the program aborted" in str(driver.failures.pop())


INDEXED = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>, %n: index, %out: memref<?xi32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %t = gpu.thread_id x
  %own = memref.alloca() : memref<8xi32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xi32>
    %scaled = arith.muli %i, %c5 : index
    %place = arith.remui %scaled, %c8 : index
    memref.store %v, %own[%place] : memref<8xi32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %own[%i] : memref<8xi32>
    memref.store %v, %out[%i] : memref<?xi32>
  }
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_private_memory_in_registers(driver: Driver, chip: str) -> None:
    """Small arrays are registers, chosen by a number (v_movreld, v_movrels) or by comparisons."""
    x, out = np.arange(3, 11, dtype=np.int32), np.zeros(8, np.int32)
    with driver.chip(chip):
        OnDevice(compiled(INDEXED, chip)).kernels.k[1, 1](x, 8, out)
    np.testing.assert_array_equal(out[np.arange(8) * 5 % 8], x)


CHOSEN = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>, %place: memref<?xi32>, %out: memref<?xi32>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = arith.constant 32 : index
  %t = gpu.thread_id x
  %at = arith.muli %t, %size : index
  %v = vector.load %x[%at] : memref<?xi32>, vector<32xi32>
  %p = memref.load %place[%zero] : memref<?xi32>
  %i = arith.index_cast %p : i32 to index
  %e = vector.extract %v[%i] : i32 from vector<32xi32>
  %sum = arith.addi %e, %p : i32
  %after = arith.addi %i, %one : index
  %next = arith.remui %after, %size : index
  %changed = vector.insert %sum, %v[%next] : i32 into vector<32xi32>
  vector.store %changed, %out[%at] : memref<?xi32>, vector<32xi32>
  gpu.return
} }
"""


@pytest.mark.parametrize("target", [*CHIPS, "gfx942,O=0", "gfx9-4-generic"])
def test_positions_in_vectors_that_are_one_number_for_all(driver: Driver, target: str) -> None:
    """gfx9 sets a mode for it, in which registers are counted from another one (s_set_gpr_idx_on)."""
    chip = {"gfx9-4-generic": "gfx942"}.get(target, target.split(",")[0])
    with driver.chip(chip):
        library = OnDevice(compiled(CHOSEN, target))
        for place in (0, 5, 31):
            x, out = np.arange(70 * 32, dtype=np.int32) * 3, np.zeros(70 * 32, np.int32)
            library.kernels.k[1, 70](x, np.array([place], np.int32), out)
            want = x.reshape(70, 32).copy()
            want[:, (place + 1) % 32] = want[:, place] + place
            np.testing.assert_array_equal(out.reshape(70, 32), want)


FUNCTIONS = ("exp", "expm1", "log1p", "sinh", "cosh", "asinh", "acosh", "tanh")


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_fast_math_keeps_infinity_and_nan(driver: Driver, chip: str) -> None:
    """It allows approximations of numbers, and what is too large is infinity."""
    calls = "\n".join(
        f"%r{i} = math.{name} %v : f32\n%i{i} = arith.constant {i} : index\n"
        f"memref.store %r{i}, %out[%t, %i{i}] : memref<?x{len(FUNCTIONS)}xf32>"
        for i, name in enumerate(FUNCTIONS)
    )
    source = f"""gpu.module @m {{ gpu.func @k(%x: memref<?xf32>, %out: memref<?x{len(FUNCTIONS)}xf32>) kernel {{
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<?xf32>
      {calls}
      gpu.return
    }} }}"""
    x = np.array([-np.inf, -200, -2, 0.5, 1.5, 200, np.inf, np.nan], np.float32)
    out = np.zeros((len(x), len(FUNCTIONS)), np.float32)
    with driver.chip(chip):
        OnDevice(compiled(source, f"{chip},fast")).kernels.k[1, len(x)](x, out)
    numpy = {"asinh": "arcsinh", "acosh": "arccosh"}
    with np.errstate(all="ignore"):
        expected = np.stack([getattr(np, numpy.get(name, name))(x) for name in FUNCTIONS], axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


QUOTIENTS = """
gpu.module @m { gpu.func @k(%x: memref<?xf64>, %y: memref<?xf64>, %out: memref<?x2xf64>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf64>
  %w = memref.load %y[%t] : memref<?xf64>
  %q = arith.divf %v, %w : f64
  %a = math.atan %v : f64
  memref.store %q, %out[%t, %zero] : memref<?x2xf64>
  memref.store %a, %out[%t, %one] : memref<?x2xf64>
  gpu.return
} }
"""


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_fast_division_keeps_infinity_and_zero(driver: Driver, chip: str) -> None:
    """AMD's approximate division of f64 has NaN for them."""
    x = np.array([1, -3, 0, 1, np.inf, -np.inf, 2, np.nan, 5, 1e300])
    y = np.array([0, 0, 2, np.inf, 3, 5, -np.inf, 1, 3, 1e-300])
    out = np.zeros((len(x), 2))
    with driver.chip(chip):
        OnDevice(compiled(QUOTIENTS, f"{chip},fast")).kernels.k[1, len(x)](x, y, out)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out, np.stack([x / y, np.arctan(x)], axis=1), rtol=1e-14)


VECTORS = """
gpu.module @m { gpu.func @k(%x: memref<?xi32>, %places: memref<?xi32>, %flags: memref<?xi1>, %out: memref<?xi32>)
    kernel {
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %none = arith.constant dense<-1> : vector<4xi32>
  %t = gpu.thread_id x
  %at = arith.muli %t, %c4 : index
  %v = vector.transfer_read %x[%at], %zero : memref<?xi32>, vector<4xi32>
  %p = vector.load %places[%at] : memref<?xi32>, vector<4xi32>
  %i = arith.index_cast %p : vector<4xi32> to vector<4xindex>
  %chosen = vector.load %flags[%at] : memref<?xi1>, vector<4xi1>
  %base = arith.constant 0 : index
  %g = vector.gather %x[%base] [%i], %chosen, %none
    : memref<?xi32>, vector<4xindex>, vector<4xi1>, vector<4xi32> into vector<4xi32>
  %sum = arith.addi %v, %g : vector<4xi32>
  vector.transfer_write %sum, %out[%at] : vector<4xi32>, memref<?xi32>
  gpu.return
} }
"""


@pytest.mark.parametrize("index", [32, 64])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1201"])
def test_vectors_in_memory_with_both_sizes_of_indices(driver: Driver, chip: str, index: int) -> None:
    x, out = np.arange(5, 19, dtype=np.int32), np.zeros(14, np.int32)
    places = np.random.default_rng(5).permutation(16).astype(np.int32) % 14
    flags = places % 3 > 0
    with driver.chip(chip):
        OnDevice(compiled(VECTORS, f"{chip},index={index}")).kernels.k[1, 4](x, places, flags, out)
    np.testing.assert_array_equal(out, x + np.where(flags, x[places], -1)[:14])


THREE = """
gpu.module @m {{ gpu.func @k(%x: memref<?x{kind}>{before}, %a: {kind}, %b: {kind}, %c: {kind}) kernel {{
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to {kind}
  %ai = arith.muli %a, %i : {kind}
  %bai = arith.addi %ai, %b : {kind}
  %cbai = arith.muli %bai, %c : {kind}
  memref.store %cbai, %x[%t] : memref<?x{kind}>
  gpu.return
}} }}
"""


@pytest.mark.parametrize(("kind", "before"), [("i32", ""), ("i64", ", %d: i64")])
@pytest.mark.parametrize("chip", CHIPS)
def test_three_numbers_at_the_end_of_the_arguments(driver: Driver, chip: str, kind: str, before: str) -> None:
    """LLVM reads them as four, which stay within the last 16 bytes."""
    x = np.zeros(5, kind.replace("i", "int"))
    with driver.chip(chip):
        kernels = OnDevice(compiled(THREE.format(kind=kind, before=before), chip)).kernels
        kernels.k[1, 5](x, *[2 for _ in before[:1]], 3, 4, 5)
    np.testing.assert_array_equal(x, (np.arange(5) * 3 + 4) * 5)


NARROW = """
gpu.module @m {{ gpu.func @k(%x: memref<?x{kind}>, %y: memref<?x{kind}>) kernel {{
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?x{kind}>
  %w = memref.load %y[%t] : memref<?x{kind}>
  %q = arith.div{sign} %v, %w : {kind}
  %r = arith.rem{sign} %v, %w : {kind}
  memref.store %q, %x[%t] : memref<?x{kind}>
  memref.store %r, %y[%t] : memref<?x{kind}>
  gpu.return
}} }}
"""


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
def test_quotient_and_remainder_of_few_bits_without_optimization(driver: Driver, chip: str, dtype: type) -> None:
    """LLVM makes them one operation, which its code generator for AMD GPUs does not know."""
    limits = np.iinfo(dtype)
    x = np.array([limits.max, limits.min, 100, 7, 5, 0, limits.max, 99], dtype)
    y = np.array([3, 7, limits.max, 2, 9, 4, limits.max, 10], dtype)
    quotient, remainder = x.copy(), y.copy()
    sign, kind = ("ui" if limits.min == 0 else "si"), f"i{limits.bits}"
    source = NARROW.format(kind=kind, sign=sign)
    with driver.chip(chip):
        library = OnDevice(compiled(source, f"{chip},O=0"))
        library.kernels.k[1, 8](quotient.view(f"i{limits.bits // 8}"), remainder.view(f"i{limits.bits // 8}"))
    np.testing.assert_array_equal(quotient, np.trunc(x / y.astype(np.float64)).astype(dtype))
    np.testing.assert_array_equal(remainder, np.fmod(x, y))


FEW_BITS = """
gpu.module @m {{ gpu.func @k(%x: memref<?xi32>, %y: memref<?xi32>) kernel {{
  %t = gpu.thread_id x
  %unused = arith.constant {unused} : i32
  %v = memref.load %x[%t] : memref<?xi32>
  %w = memref.load %y[%t] : memref<?xi32>
  %v1 = arith.shli %v, %unused : i32
  %w1 = arith.shli %w, %unused : i32
  %v2 = arith.shr{extended} %v1, %unused : i32
  %w2 = arith.shr{extended} %w1, %unused : i32
  %q = arith.div{sign} %v2, %w2 : i32
  %r = arith.rem{sign} %v2, %w2 : i32
  memref.store %q, %x[%t] : memref<?xi32>
  memref.store %r, %y[%t] : memref<?xi32>
  gpu.return
}} }}
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize(("bits", "extended", "sign"), [(24, "ui", "ui"), (24, "si", "si"), (16, "si", "ui")])
@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "gfx1201"])
def test_quotients_of_numbers_that_need_few_bits(
    driver: Driver, chip: str, bits: int, extended: str, sign: str, level: int
) -> None:
    """LLVM divides those of up to 24 bits by a reciprocal and corrects too large a quotient nowhere."""
    generator = np.random.default_rng(3)
    most = (1 << (bits - (extended == "si"))) - 1
    y = generator.integers(2, most, 64)
    x = most // y * y - 1
    x[:2], y[:2] = most - 1, most
    if extended == "si":
        x[1::2], y[::3] = -x[1::2], -y[::3]
    v, w = x.astype(np.int32), y.astype(np.int32)
    if sign == "ui":
        x, y = (value & 0xFFFFFFFF for value in (x, y))
    quotient = np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
    with driver.chip(chip):
        library = OnDevice(
            compiled(FEW_BITS.format(unused=32 - bits, extended=extended, sign=sign), f"{chip},O={level}")
        )
        library.kernels.k[1, 64](v, w)
    np.testing.assert_array_equal(v, quotient.astype(np.uint32).view(np.int32))
    np.testing.assert_array_equal(w, (x - quotient * y).astype(np.uint32).view(np.int32))


HALVES = """
gpu.module @m { gpu.func @k(%a: f16, %x: memref<?xf16>, %y: memref<?xf16>, %minus: i1) kernel {
  %t = gpu.thread_id x
  %v = memref.load %x[%t] : memref<?xf16>
  %w = memref.load %y[%t] : memref<?xf16>
  %n = arith.negf %v : f16
  %s = arith.select %minus, %n, %v : f16
  %f = math.fma %a, %s, %w : f16
  memref.store %f, %y[%t] : memref<?xf16>
  gpu.return
} }
"""


@pytest.mark.parametrize("minus", [False, True])
@pytest.mark.parametrize("chip", CHIPS)
def test_products_added_to_halves_of_registers(driver: Driver, chip: str, minus: bool) -> None:
    """On gfx11 both numbers are in one register, and v_fmac_f16 adds to its upper half."""
    x, y = np.arange(8, dtype=np.float16), np.arange(100, 108, dtype=np.float16)
    with driver.chip(chip):
        OnDevice(compiled(HALVES, chip)).kernels.k[1, 8](np.float16(2), x, y, minus)
    np.testing.assert_array_equal(y, np.arange(100, 108) + (-2 if minus else 2) * np.arange(8))
