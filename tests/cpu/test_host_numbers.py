"""Numbers in kernels on the CPU against NumPy: integer and float types, math functions, atomics, vectors, strides."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.runtime import Library

MAP = """
  gpu.func @{name}({arguments}, %out: memref<?x{result}>) kernel {{
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %t = gpu.thread_id x
    %start = arith.muli %b, %n : index
    %i = arith.addi %start, %t : index
    %size = arith.constant 0 : index
    %count = memref.dim %out, %size : memref<?x{result}>
    %inside = arith.cmpi ult, %i, %count : index
    scf.if %inside {{
{loads}
{body}
      memref.store %r, %out[%i] : memref<?x{result}>
    }}
    gpu.return
  }}
"""
DTYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "complex<f32>": np.complex64,
}  # fmt: skip


def kernel(name: str, operands: list[str], result: str, body: str) -> str:
    """A kernel that computes %r from %x0, %x1 … element by element."""
    arguments = ", ".join(f"%a{i}: memref<?x{kind}>" for i, kind in enumerate(operands))
    loads = "\n".join(f"      %x{i} = memref.load %a{i}[%i] : memref<?x{kind}>" for i, kind in enumerate(operands))
    return MAP.format(name=name, arguments=arguments, result=result, loads=loads, body=f"      {body}")


@functools.cache
def module(*kernels: str) -> Library:
    return on_host("gpu.module @numbers {\n" + "".join(kernels) + "}\n")


def run(library: Library, name: str, result: Any, *operands: Any) -> Any:
    out = np.zeros(len(operands[0]), result)
    library.kernels[name][-(-len(out) // 64), 64](*operands, out)
    return out


VECTOR = """gpu.module @m {{ gpu.func @k(%x: memref<?x{kind}>) kernel {{
  %zero = arith.constant 0 : index
  %v = vector.load %x[%zero] : memref<?x{kind}>, vector<8x{kind}>
  %ones = arith.constant dense<{ones}> : vector<8x{kind}>
  %r = arith.xori %v, %ones : vector<8x{kind}>
  vector.store %r, %x[%zero] : memref<?x{kind}>, vector<8x{kind}>
  gpu.return
}} }}"""


@pytest.mark.parametrize("kind", ["i8", "i32", "i64"])
@pytest.mark.parametrize("ones", [-1, 127])
def test_vectors_whose_bits_are_turned_over(kind: str, ones: int) -> None:
    """What counts down in such a way is an index, a number; of a vector there is no range."""
    x = np.array([0, 1, -1, 5, 100, -100, 127, 126], DTYPES[kind])
    expected = x ^ ones
    on_host(VECTOR.format(kind=kind, ones=ones)).kernels.k[1, 1](x)
    np.testing.assert_array_equal(x, expected)


# Integers wrap around, and division goes towards zero.

INTEGER_BODIES = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "divsi": lambda a, b: _truncated(a, b),
    "remsi": lambda a, b: a - _truncated(a, b) * b,
    "divui": lambda a, b: (unsigned(a) // unsigned(b)).view(a.dtype),
    "remui": lambda a, b: (unsigned(a) % unsigned(b)).view(a.dtype),
    "minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
    "maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
}
INTEGERS = ("i8", "i16", "i32", "i64")


def unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _truncated(a: Any, b: Any) -> Any:
    quotient, remainder = np.divmod(a, b)
    return quotient + ((remainder != 0) & ((a < 0) != (b < 0)))


@functools.cache
def integers() -> Library:
    return module(
        *(
            kernel(f"{op}_{kind}", [kind, kind], kind, f"%r = arith.{op} %x0, %x1 : {kind}")
            for op in INTEGER_BODIES
            for kind in INTEGERS
        )
    )


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_BODIES)
def test_integer_arithmetic(op: str, kind: str) -> None:
    info = np.iinfo(DTYPES[kind])
    random = np.random.default_rng(3)
    a = random.integers(info.min + 1, info.max, 300, DTYPES[kind], endpoint=True)
    b = random.integers(info.min + 1, info.max, 300, DTYPES[kind], endpoint=True)
    a[:4] = b[:4] = [info.max, info.min + 1, 1, -1]
    b[b == 0] = 3
    with np.errstate(over="ignore"):
        expected = INTEGER_BODIES[op](a, b)
    np.testing.assert_array_equal(run(integers(), f"{op}_{kind}", DTYPES[kind], a, b), expected)


def test_shifts_casts_and_booleans() -> None:
    library = module(
        kernel("shli", ["i32", "i32"], "i32", "%r = arith.shli %x0, %x1 : i32"),
        kernel("shrsi", ["i32", "i32"], "i32", "%r = arith.shrsi %x0, %x1 : i32"),
        kernel("shrui", ["i32", "i32"], "i32", "%r = arith.shrui %x0, %x1 : i32"),
        kernel("extsi", ["i8"], "i64", "%r = arith.extsi %x0 : i8 to i64"),
        kernel("trunci", ["i64"], "i16", "%r = arith.trunci %x0 : i64 to i16"),
        kernel("sitofp", ["i64"], "f32", "%r = arith.sitofp %x0 : i64 to f32"),
        kernel("fptosi", ["f64"], "i32", "%r = arith.fptosi %x0 : f64 to i32"),
        kernel("truncf", ["f64"], "f32", "%r = arith.truncf %x0 : f64 to f32"),
        kernel("negative", ["i32"], "i1", "%z = arith.constant 0 : i32\n %r = arith.cmpi slt, %x0, %z : i32"),
        kernel("xor", ["i1", "i1"], "i1", "%r = arith.xori %x0, %x1 : i1"),
        kernel("index", ["index"], "index", "%r = arith.muli %x0, %i : index"),
    )
    random = np.random.default_rng(0)
    x = random.integers(-(1 << 31), 1 << 31, 100, np.int64).astype(np.int32)
    by = random.integers(0, 32, 100).astype(np.int32)
    np.testing.assert_array_equal(run(library, "shli", np.int32, x, by), x << by)
    np.testing.assert_array_equal(run(library, "shrsi", np.int32, x, by), x >> by)
    np.testing.assert_array_equal(run(library, "shrui", np.int32, x, by), (unsigned(x) >> unsigned(by)).view(np.int32))
    small = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(run(library, "extsi", np.int64, small), small)
    large = random.integers(-(1 << 62), 1 << 62, 100)
    np.testing.assert_array_equal(run(library, "trunci", np.int16, large), large.astype(np.int16))
    np.testing.assert_array_equal(run(library, "sitofp", np.float32, large), large.astype(np.float32))
    real = random.normal(scale=1000, size=100)
    np.testing.assert_array_equal(run(library, "fptosi", np.int32, real), real.astype(np.int32))
    np.testing.assert_array_equal(run(library, "truncf", np.float32, real), real.astype(np.float32))
    np.testing.assert_array_equal(run(library, "negative", np.bool_, x), x < 0)
    flags = random.integers(0, 2, (2, 100)).astype(bool)
    np.testing.assert_array_equal(run(library, "xor", np.bool_, *flags), flags[0] ^ flags[1])
    np.testing.assert_array_equal(run(library, "index", np.int64, large >> 32), (large >> 32) * np.arange(100))


# Small floats.

HALVES = {"add": "addf", "multiply": "mulf", "divide": "divf"}


@pytest.mark.parametrize("op", HALVES)
def test_half_precision(op: str) -> None:
    library = module(kernel(op, ["f16", "f16"], "f16", f"%r = arith.{HALVES[op]} %x0, %x1 : f16"))
    a, b = np.random.default_rng(1).normal(size=(2, 500)).astype(np.float16)
    np.testing.assert_array_equal(run(library, op, np.float16, a, b), getattr(np, op)(a, b))


def test_half_precision_converts_to_other_floats() -> None:
    library = module(
        kernel("up", ["f16"], "f64", "%r = arith.extf %x0 : f16 to f64"),
        kernel("down", ["f64"], "f16", "%r = arith.truncf %x0 : f64 to f16"),
    )
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(run(library, "up", np.float64, x), x.astype(np.float64))
    wide = np.random.default_rng(2).normal(scale=1e3, size=500)
    np.testing.assert_array_equal(run(library, "down", np.float16, wide), wide.astype(np.float16))


def bfloat16(x: Any) -> Any:
    """float32 rounded to bfloat16, to nearest and even, as its bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(np.int16)


def test_bfloat16() -> None:
    body = "%p = arith.bitcast %x0 : i16 to bf16\n %q = arith.bitcast %x1 : i16 to bf16\n"
    library = module(
        kernel("narrow", ["f32"], "i16", "%p = arith.truncf %x0 : f32 to bf16\n %r = arith.bitcast %p : bf16 to i16"),
        kernel("multiply", ["i16", "i16"], "i16",
               f"{body} %s = arith.mulf %p, %q : bf16\n %r = arith.bitcast %s : bf16 to i16"),
        kernel("widen", ["i16"], "f32", "%p = arith.bitcast %x0 : i16 to bf16\n %r = arith.extf %p : bf16 to f32"),
    )  # fmt: skip
    x = np.random.default_rng(4).normal(size=(2, 300)).astype(np.float32)
    bits = bfloat16(x)
    np.testing.assert_array_equal(run(library, "narrow", np.int16, x[0]), bits[0])
    wide = (bits.astype(np.int32) << 16).view(np.float32)
    np.testing.assert_array_equal(run(library, "widen", np.float32, bits[1]), wide[1])
    np.testing.assert_array_equal(run(library, "multiply", np.int16, *bits), bfloat16(wide[0] * wide[1]))


@pytest.mark.parametrize("target", ["host", "host:native"])
def test_bfloat16_keeps_denormals(target: str) -> None:
    """AVX-512 has an instruction that makes zeros of them."""
    narrow, double = "%p = arith.truncf %x0 : f32 to bf16", "%q = arith.bitcast %x0 : i16 to bf16\n"
    double += "%p = arith.addf %q, %q : bf16"
    result = "\n%r = arith.bitcast %p : bf16 to i16"
    text = "gpu.module @numbers {\n" + kernel("narrow", ["f32"], "i16", narrow + result)
    text += kernel("double", ["i16"], "i16", double + result) + "}\n"
    library = on_host(text, target=target)
    bits = np.concatenate([np.arange(0x100), 0x8000 + np.arange(0x100)]).astype(np.uint16).view(np.int16)
    wide = (bits.astype(np.int32) << 16).view(np.float32)
    between = (wide.view(np.int32) + 0x7FFF).view(np.float32)  # just below the middle of two
    np.testing.assert_array_equal(run(library, "narrow", np.int16, wide), bits)
    np.testing.assert_array_equal(run(library, "narrow", np.int16, between), bits)
    np.testing.assert_array_equal(run(library, "double", np.int16, bits), bfloat16(wide + wide))
    assert "vcvtneps2bf16" not in emit_text(text, "isa", ["host:sapphirerapids"])


def test_complex_numbers() -> None:
    kind = "complex<f32>"
    library = module(
        kernel("multiply", [kind, kind], kind, f"%r = complex.mul %x0, %x1 : {kind}"),
        kernel("add", [kind, kind], kind, f"%r = complex.add %x0, %x1 : {kind}"),
    )
    parts = np.random.default_rng(6).normal(size=(2, 100, 2)).astype(np.float32)
    a, b = parts.view(np.complex64)[..., 0]
    np.testing.assert_array_equal(run(library, "add", np.complex64, a, b), a + b)
    np.testing.assert_allclose(run(library, "multiply", np.complex64, a, b), a * b, rtol=1e-5, atol=1e-6)


# Math functions.

ANY, POSITIVE, UNIT, ABOVE_ONE = (-4.0, 4.0), (0.01, 20.0), (-0.99, 0.99), (1.01, 20.0)
UNARY: dict[str, tuple[Any, tuple[float, float]]] = {
    "absf": (np.abs, ANY), "acos": (np.arccos, UNIT), "acosh": (np.arccosh, ABOVE_ONE), "asin": (np.arcsin, UNIT),
    "asinh": (np.arcsinh, ANY), "atan": (np.arctan, ANY), "atanh": (np.arctanh, UNIT), "cbrt": (np.cbrt, ANY),
    "ceil": (np.ceil, ANY), "cos": (np.cos, ANY), "cosh": (np.cosh, ANY), "erf": (np.vectorize(math.erf), ANY),
    "erfc": (np.vectorize(math.erfc), ANY), "exp": (np.exp, ANY), "exp2": (np.exp2, ANY), "expm1": (np.expm1, ANY),
    "floor": (np.floor, ANY), "log": (np.log, POSITIVE), "log10": (np.log10, POSITIVE), "log1p": (np.log1p, POSITIVE),
    "log2": (np.log2, POSITIVE), "round": (lambda x: np.trunc(x + np.copysign(0.5, x)), ANY),
    "roundeven": (np.rint, ANY), "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "sin": (np.sin, ANY),
    "sinh": (np.sinh, ANY), "sqrt": (np.sqrt, POSITIVE), "tan": (np.tan, (-1.4, 1.4)), "tanh": (np.tanh, ANY),
    "trunc": (np.trunc, ANY),
}  # fmt: skip
BINARY = {"atan2": np.arctan2, "copysign": np.copysign, "powf": np.power}


@functools.cache
def math_functions() -> Library:
    kernels = []
    for kind in ("f32", "f64"):
        for op in UNARY:
            kernels.append(kernel(f"{op}_{kind}", [kind], kind, f"%r = math.{op} %x0 : {kind}"))
        for op in BINARY:
            kernels.append(kernel(f"{op}_{kind}", [kind, kind], kind, f"%r = math.{op} %x0, %x1 : {kind}"))
        kernels.append(kernel(f"fma_{kind}", [kind] * 3, kind, f"%r = math.fma %x0, %x1, %x2 : {kind}"))
    return module(*kernels)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", UNARY)
def test_math(op: str, kind: str) -> None:
    function, (low, high) = UNARY[op]
    x = np.random.default_rng(8).uniform(low, high, 257).astype(DTYPES[kind])
    expected = function(x.astype(np.float64)).astype(DTYPES[kind])
    got = run(math_functions(), f"{op}_{kind}", DTYPES[kind], x)
    np.testing.assert_allclose(got, expected, rtol=3e-6 if kind == "f32" else 1e-13, atol=1e-7)


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("op", BINARY)
def test_math_of_two_numbers(op: str, kind: str) -> None:
    x, y = np.random.default_rng(9).uniform(0.1, 4.0, (2, 100)).astype(DTYPES[kind])
    expected = BINARY[op](x.astype(np.float64), -y.astype(np.float64)).astype(DTYPES[kind])
    got = run(math_functions(), f"{op}_{kind}", DTYPES[kind], x, -y)
    np.testing.assert_allclose(got, expected, rtol=3e-6 if kind == "f32" else 1e-13)


def test_fused_multiply_add_rounds_once() -> None:
    x = np.full(3, 1 + 2.0**-30)
    got = run(math_functions(), "fma_f64", np.float64, x, x, np.full(3, -1 - 2.0**-29))
    np.testing.assert_array_equal(got, np.full(3, 2.0**-60))


def test_math_of_integers() -> None:
    library = module(
        kernel("ctpop", ["i32"], "i32", "%r = math.ctpop %x0 : i32"),
        kernel("ctlz", ["i32"], "i32", "%r = math.ctlz %x0 : i32"),
        kernel("cttz", ["i32"], "i32", "%r = math.cttz %x0 : i32"),
        kernel("absi", ["i32"], "i32", "%r = math.absi %x0 : i32"),
    )
    x = np.array([0, 1, -1, 5, 1 << 30, -(1 << 31) + 1], np.int32)
    texts = [f"{int(value) & 0xFFFFFFFF:032b}" for value in x]
    assert run(library, "ctpop", np.int32, x).tolist() == [text.count("1") for text in texts]
    assert run(library, "ctlz", np.int32, x).tolist() == [len(text) - len(text.lstrip("0")) for text in texts]
    assert run(library, "cttz", np.int32, x).tolist() == [len(text) - len(text.rstrip("0")) for text in texts]
    assert run(library, "absi", np.int32, x).tolist() == [abs(int(value)) for value in x]


@pytest.mark.parametrize("level", ["O=0", "O=3"])
def test_powers_of_bits(level: str) -> None:
    """Halving an exponent of one bit would shift it by its width: the loop did not end."""
    vector = "%u = vector.broadcast %x0 : i1 to vector<2xi1>\n%v = vector.broadcast %x1 : i1 to vector<2xi1>\n"
    vector += "%w = math.ipowi %u, %v : vector<2xi1>\n%r = vector.extract %w[1] : i1 from vector<2xi1>"
    forms = {"scalar": "%r = math.ipowi %x0, %x1 : i1", "vector": vector}
    kernels = "".join(kernel(name, ["i1", "i1"], "i1", body) for name, body in forms.items())
    library = on_host("gpu.module @numbers {\n" + kernels + "}\n", target=f"host,{level}")
    base, exponent = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    for name in forms:
        assert run(library, name, np.bool_, base, exponent).tolist() == [True, False, True, True]


# Atomics.

ATOMIC = """
  gpu.func @{name}(%x: memref<?x{type}>, %at: memref<?xindex>, %out: memref<?x{type}>) kernel {{
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %t = gpu.thread_id x
    %start = arith.muli %b, %n : index
    %i = arith.addi %start, %t : index
    %v = memref.load %x[%i] : memref<?x{type}>
    %bin = memref.load %at[%i] : memref<?xindex>
    %old = memref.atomic_rmw {op} %v, %out[%bin] : ({type}, memref<?x{type}>) -> {type}
    gpu.return
  }}
"""
ATOMICS = {
    "addi": ("i32", np.add), "ori": ("i64", np.bitwise_or), "andi": ("i32", np.bitwise_and),
    "maxs": ("i32", np.maximum), "mins": ("i64", np.minimum), "addf": ("f32", np.add),
    "maximumf": ("f64", np.maximum), "minimumf": ("f32", np.minimum),
}  # fmt: skip


@functools.cache
def atomics() -> Library:
    return module(*(ATOMIC.format(name=op, op=op, type=kind) for op, (kind, _) in ATOMICS.items()))


@pytest.mark.parametrize("op", ATOMICS)
@given(seed=st.integers(0, 1000), bins=st.integers(1, 9), blocks=st.integers(1, 40))
@settings(max_examples=6)
def test_atomics(op: str, seed: int, bins: int, blocks: int) -> None:
    kind, ufunc = ATOMICS[op]
    random = np.random.default_rng(seed)
    x = random.integers(-1000, 1000, 64 * blocks).astype(DTYPES[kind])
    at = random.integers(0, bins, len(x))
    out = random.integers(-10, 10, bins).astype(DTYPES[kind])
    expected = out.copy()
    ufunc.at(expected, at, x)
    atomics().kernels[op][blocks, 64](x, at, out)
    np.testing.assert_array_equal(out, expected)


GENERIC_ATOMIC = """
  gpu.func @product(%x: memref<?x{type}>, %out: memref<?x{type}>) kernel {{
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?x{type}>
    %r = memref.generic_atomic_rmw %out[%c0] : memref<?x{type}> {{
    ^bb0(%old: {type}):
      %p = {op} %old, %v : {type}
      memref.atomic_yield %p : {type}
    }}
    gpu.return
  }}
"""


def generic_atomic(kind: str, op: str) -> None:
    library = module(GENERIC_ATOMIC.format(type=kind, op=op))
    x = np.full(20, 2, DTYPES[kind])
    out = np.full(1, 3, DTYPES[kind])
    library.kernels.product[1, 20](x, out)
    assert out[0] == 3 << 20


def test_any_operation_on_integers_done_atomically() -> None:
    generic_atomic("i32", "arith.muli")


def test_any_operation_on_floats_done_atomically() -> None:
    generic_atomic("f32", "arith.mulf")
