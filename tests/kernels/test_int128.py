"""Integers of 128 bits: quotients and conversions, which processors have no instructions for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from compiling import emit, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

QUOTIENTS = ("divui", "remui", "divsi", "remsi", "ceildivsi", "floordivsi")
FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def joined(name: str, array: str) -> str:
    """Loads the two words of number %i."""
    return f"""
    %{name}l = memref.load %{array}[%i, %c0] : memref<?x2xi64>
    %{name}h = memref.load %{array}[%i, %c1] : memref<?x2xi64>
    %{name}low = arith.extui %{name}l : i64 to i128
    %{name}high = arith.extui %{name}h : i64 to i128
    %{name}up = arith.shli %{name}high, %c64 : i128
    %{name} = arith.ori %{name}up, %{name}low : i128
"""


def stored(name: str, array: str, place: str) -> str:
    return f"""
    %{name}l = arith.trunci %{name} : i128 to i64
    %{name}up = arith.shrui %{name}, %c64 : i128
    %{name}h = arith.trunci %{name}up : i128 to i64
    memref.store %{name}l, %{array}[{place}, %c0] : memref<?x2xi64>
    memref.store %{name}h, %{array}[{place}, %c1] : memref<?x2xi64>
"""


CONSTANTS = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : i128
"""


def in_kernel(arguments: str, body: str) -> str:
    return (
        f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{ {CONSTANTS} %i = gpu.thread_id x\n{body} gpu.return }} }}"
    )


def quotient(name: str) -> str:
    body = joined("a", "x") + joined("b", "y") + f"%r = arith.{name} %a, %b : i128\n" + stored("r", "o", "%i")
    return in_kernel("%x: memref<?x2xi64>, %y: memref<?x2xi64>, %o: memref<?x2xi64>", body)


def words(numbers: list[int]) -> np.ndarray:
    return np.array([[n % 2**64, n % 2**128 >> 64] for n in numbers], np.uint64).view(np.int64)


def numbers(array: np.ndarray) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in array.view(np.uint64)]


def samples(count: int) -> list[int]:
    generator = np.random.default_rng(count)
    drawn = [int.from_bytes(generator.bytes(16), "little") >> int(generator.integers(0, 127)) for _ in range(count)]
    return [*drawn, *(-n % 2**128 for n in drawn), 1, 2**64, 2**64 - 1, 2**127 - 1, 2**128 - 1]


def exact(name: str, a: int, b: int) -> int:
    if name.endswith("ui"):
        return a // b if name == "divui" else a % b
    a, b = (n - 2**128 if n >= 2**127 else n for n in (a, b))
    if name == "floordivsi":
        return a // b
    if name == "ceildivsi":
        return -(-a // b)
    towards_zero = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return towards_zero if name == "divsi" else a - b * towards_zero


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients(name: str) -> None:
    x = [*samples(40), 5]
    y = [*samples(41)[: len(x) - 1], 3]
    y = [n or 1 for n in y]
    out = np.zeros((len(x), 2), np.int64)
    on_host(quotient(name)).kernels.k[1, len(x)](words(x), words(y), out)
    assert numbers(out) == [exact(name, a, b) % 2**128 for a, b in zip(x, y, strict=True)]
    assert emit(quotient(name), "object", ["nvvm:sm_90", "rocdl:gfx942"])


def rounded(n: int, dtype: type[np.floating]) -> float:
    """To nearest, ties to even, in one step."""
    digits = ml_dtypes.finfo(dtype).nmant + 1
    excess = max(abs(n).bit_length() - digits, 0)
    whole, rest = abs(n) >> excess, abs(n) & ((1 << excess) - 1)
    half = 1 << excess >> 1
    whole += excess > 0 and (rest > half or (rest == half and whole & 1))
    value = float(whole) * 2.0**excess
    largest = float(ml_dtypes.finfo(dtype).max)
    return float(np.copysign(value if value <= largest else np.inf, n))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("sign", ["s", "u"])
def test_to_floats(kind: str, sign: str) -> None:
    body = (
        joined("a", "x") + f"%f = arith.{sign}itofp %a : i128 to {kind}\nmemref.store %f, %o[%i] : memref<?x{kind}>\n"
    )
    text = in_kernel(f"%x: memref<?x2xi64>, %o: memref<?x{kind}>", body)
    ties = [(2**60 + odd) << 40 for odd in range(64, 1024, 64)] + [(2**30 + 64) << 70, ((2**30 + 64) << 70) + 1]
    ties += [(257 << place) + odd for place in range(20, 110, 10) for odd in (-1, 0, 1)]
    x = [*samples(60), *ties, 0, 65503, 65520, 65519]
    signed = [n - 2**128 if sign == "s" and n >= 2**127 else n for n in x]
    expected = [rounded(n, FLOATS[kind]) for n in signed]
    out = np.zeros(len(x), FLOATS[kind])
    on_host(text).kernels.k[1, len(x)](words(x), out)
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    assert emit(text, "object", ["nvvm:sm_75", "nvvm:sm_90"])
    library = offload.compile(text, targets=["rocdl:gfx1100"])
    out[:] = 0
    with shared().chip("gfx1100"):
        library.use("hip")
        OnDevice(library).kernels.k[1, len(x)](words(x), out)
    shared().check()
    np.testing.assert_array_equal(out.astype(np.float64), expected)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("sign", ["s", "u"])
def test_from_floats(kind: str, sign: str) -> None:
    body = f"%f = memref.load %x[%i] : memref<?x{kind}>\n%r = arith.fpto{sign}i %f : {kind} to i128\n"
    text = in_kernel(f"%x: memref<?x{kind}>, %o: memref<?x2xi64>", body + stored("r", "o", "%i"))
    x = np.array([0, 0.5, 1, 1.75, 3e4, 2**10 + 0.5, *([2.0**100 * 1.5, 1e20] if kind != "f16" else [])], FLOATS[kind])
    if sign == "s":
        x = np.concatenate([x, -x])
    out = np.zeros((len(x), 2), np.int64)
    on_host(text).kernels.k[1, len(x)](x, out)
    assert numbers(out) == [int(float(value)) % 2**128 for value in x]


def test_in_host_code() -> None:
    text = """
    func.func @f(%a: i64, %b: i64) -> f64 {
      %x = arith.extsi %a : i64 to i128
      %y = arith.muli %x, %x : i128
      %d = arith.extsi %b : i64 to i128
      %q = arith.divsi %y, %d : i128
      %r = arith.sitofp %q : i128 to f64
      return %r : f64
    }"""
    assert on_host(text).f(2**61 + 1, -1000) == float(-((2**61 + 1) ** 2 // 1000))


def test_powers_of_integers() -> None:
    """The numbers 0 and -1 of this width: what else the exponent may be decides nothing."""
    bases = [0, 1, 2**128 - 1, 3, 2**64 - 1, 2**127, 2**100 + 7]
    exponents = [0, 1, 2, 5, 2**64, 2**127 - 1]
    pairs = [(base, exponent) for base in bases for exponent in exponents]
    expected = [pow(base, exponent, 2**128) for base, exponent in pairs]
    for base, odd, even in ((1, 1, 1), (2**128 - 1, 2**128 - 1, 1), (2**64 - 1, 0, 0), (3, 0, 0)):
        pairs += [(base, 2**128 - 1), (base, 2**127), (base, 2**128 - 2**64 + 1)]
        expected += [odd, even, odd]
    body = joined("a", "x") + joined("b", "y") + "%r = math.ipowi %a, %b : i128\n" + stored("r", "o", "%i")
    text = in_kernel("%x: memref<?x2xi64>, %y: memref<?x2xi64>, %o: memref<?x2xi64>", body)
    out = np.zeros((len(pairs), 2), np.int64)
    on_host(text).kernels.k[1, len(pairs)](*(words(list(part)) for part in zip(*pairs, strict=True)), out)
    assert numbers(out) == expected


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("chip", ["host", "sm_80", "gfx1100"])
def test_floats_to_powers(chip: str, kind: str) -> None:
    body = joined("b", "y") + f"%a = memref.load %x[%i] : memref<?x{kind}>\n"
    body += f"%r = math.fpowi %a, %b : {kind}, i128\nmemref.store %r, %o[%i] : memref<?x{kind}>\n"
    text = in_kernel(f"%x: memref<?x{kind}>, %y: memref<?x2xi64>, %o: memref<?x{kind}>", body)
    small = float(ml_dtypes.finfo(FLOATS[kind]).eps)
    bases = [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 1 + small, -1 - small, 1 - small / 2, small / 2 - 1, np.inf, -np.inf]
    exponents = [0, 1, -1, 2, -3, 2**70, 2**70 + 1, -(2**70), -(2**70) - 1, 2**127 - 1, -(2**127)]
    x, y = zip(*((base, exponent) for base in bases for exponent in exponents), strict=True)
    out = np.zeros(len(x), FLOATS[kind])
    with running_on(chip, text) as library:
        library.kernels.k[1, len(x)](np.array(x, FLOATS[kind]), words([n % 2**128 for n in y]), out)
    with np.errstate(all="ignore"):
        size = np.abs(np.array(x)) ** np.array([float(n) for n in y])
        odd = np.array([n % 2 for n in y], bool) & np.signbit(x)
        expected = np.where(odd, -size, size).astype(FLOATS[kind]).astype(np.float64)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=2 * small)
    np.testing.assert_array_equal(np.signbit(out.astype(np.float64)), np.signbit(expected))


@pytest.mark.parametrize("name", ["divsi", "remui", "floordivsi"])
def test_quotients_on_devices(name: str) -> None:
    x, y = [-7 % 2**128, 2**127, 2**100 + 3, 7], [2, 2**128 - 3, 2**70, 2**128 - 2]
    out = np.zeros((4, 2), np.int64)
    library = offload.compile(quotient(name), targets=["rocdl:gfx1100"])
    with shared().chip("gfx1100"):
        library.use("hip")
        OnDevice(library).kernels.k[1, 4](words(x), words(y), out)
    shared().check()
    assert numbers(out) == [exact(name, a, b) % 2**128 for a, b in zip(x, y, strict=True)]
