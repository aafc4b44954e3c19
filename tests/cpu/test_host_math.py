"""Functions of mathematics on the CPU: how far from the true value, at which arguments, and that all forms agree.

f32 is compared with f64 of NumPy, f64 with the 64 bits of x87's long double.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from compiling import emit_text
from cpu_levels import levels_here

import offload

LEVELS = [level for level in levels_here() if level != "x86-64-v2"] or ["generic"]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-40, -1e-40, 1e-300, 5e-324, np.inf, -np.inf, np.nan]
FAR = [1e6, -1e6, 1000000.06, 3e7, -2.5e9, 1e20, -3e38, 1e300]

# Operation: NumPy's function, the arguments to try, most error in units of the last place (f32, f64).
ONE = {
    "exp": (np.exp, [(-110, 95), (-760, 720), (-1, 1)], (1.1, 1.1)),
    "exp2": (np.exp2, [(-155, 130), (-1080, 1030), (-1, 1)], (1.1, 1.1)),
    "expm1": (np.expm1, [(-30, 95), (-50, 720), (-1, 1), (-1e-3, 1e-3)], (2.0, 2.0)),
    "tanh": (np.tanh, [(-10, 10), (-25, 25), (-1e-2, 1e-2)], (2.5, 2.5)),
    "log": (np.log, [(0, 4), (0, 3e38), (0.9, 1.1), (0, 1e-37)], (1.1, 1.1)),
    "log2": (np.log2, [(0, 4), (0, 3e38), (0.9, 1.1), (0, 1e-37)], (2.0, 2.0)),
    "log10": (np.log10, [(0, 4), (0, 3e38), (0.9, 1.1), (0, 1e-37)], (2.0, 2.0)),
    "log1p": (np.log1p, [(-1, 4), (0, 3e38), (-0.1, 0.1), (-1e-6, 1e-6)], (1.5, 1.5)),
    "sin": (np.sin, [(-10, 10), (-1e6, 1e6), (-1e-3, 1e-3)], (1.7, 1.0)),
    "cos": (np.cos, [(-10, 10), (-1e6, 1e6)], (1.7, 1.0)),
    "tan": (np.tan, [(-10, 10), (-1e6, 1e6), (-1e-3, 1e-3)], (3.5, 2.5)),
}
PROGRAM = """
gpu.module @{op}_{type} {{
  gpu.func @{op}_{type}(%x: memref<?x{type}>, %y: memref<?x{type}>, %out: memref<?x{type}>, %n: index) kernel {{
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %first = arith.muli %block, %size : index
    %i = arith.addi %first, %thread : index
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {{
      %a = memref.load %x[%i] : memref<?x{type}>
      %b = memref.load %y[%i] : memref<?x{type}>
      %r = math.{op} {operands} : {type}
      memref.store %r, %out[%i] : memref<?x{type}>
    }}
    gpu.return
  }}
}}
"""
OPERANDS = {"powf": "%a, %b", "fma": "%a, %b, %a"}
OTHERS = ["powf", "erf", "fma", "floor", "ceil", "trunc", "round", "roundeven", "rsqrt", "sqrt"]


@functools.cache
def library(target: str) -> offload.Library:
    """All functions of this page, f32 and f64."""
    parts = [
        PROGRAM.format(op=op, type=kind, operands=OPERANDS.get(op, "%a"))
        for op in [*ONE, *OTHERS]
        for kind in ("f32", "f64")
    ]
    return offload.compile("module attributes {gpu.container_module} {" + "".join(parts) + "}", targets=[target])


def run(target: str, name: str, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    out = np.empty_like(x)
    kernel = getattr(library(target).kernels, f"{name}_f{8 * x.itemsize}")
    kernel[math.ceil(len(x) / 256), 256](x, x if y is None else y, out, len(x))
    return out


def distance(got: np.ndarray, true: np.ndarray) -> float:
    """The largest error in units of the last place of the true value; infinite where only one is infinite or NaN."""
    with np.errstate(all="ignore"):
        near = true.astype(got.dtype)
        same = (got == near) & (np.signbit(got) == np.signbit(near)) | np.isnan(got) & np.isnan(near)
        # A value that rounds to infinity is one unit beyond the largest.
        last = np.finfo(got.dtype)
        unit = np.spacing(np.where(np.isinf(near), last.max, np.abs(near))).astype(true.dtype)
        error = np.abs(got.astype(true.dtype) - true) / unit
        return float(
            np.max(np.where(same, np.where(np.isfinite(error), error, 0), np.where(np.isnan(error), np.inf, error)))
        )


def samples(kind: type, ranges: list[tuple[float, float]], count: int) -> np.ndarray:
    random = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        parts = [random.uniform(low, high, count).astype(kind) for low, high in ranges]
        bits = random.integers(0, 2 ** (8 * kind().itemsize), count, np.uint64).astype(f"u{kind().itemsize}")
        return np.concatenate([*parts, bits.view(kind), np.array(EDGES + FAR).astype(kind)])


def more_exact(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", ONE)
def test_error(op: str, kind: type, full: bool) -> None:
    reference, ranges, most = ONE[op]
    x = samples(kind, ranges, 2_000_000 if full else 50_000)
    if kind == np.float64:
        # x87's own range of angles ends here; glibc's long double functions go on, tested with f32.
        x = x[~(np.abs(x) > 2.0**60)] if op in ("sin", "cos", "tan") else x
    with np.errstate(all="ignore"):
        true = reference(more_exact(x))
    results = {level: run(f"host:{level}", op, x) for level in LEVELS}
    found = {level: distance(result, true) for level, result in results.items()}
    print(op, kind.__name__, {level: round(value, 2) for level, value in found.items()})
    assert max(found.values()) <= most[kind == np.float64], found


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_error_of_pow(kind: type, full: bool) -> None:
    count = 1_000_000 if full else 60_000
    random = np.random.default_rng(1)
    special = np.array([*EDGES, 4.0, 5.0, -4.5, 2.0**23, 2.0**24 - 1, 2.0**53 - 1, 2.0**53, 1e10, -1e10], kind)
    pairs = np.array(np.meshgrid(special, special)).reshape(2, -1)
    with np.errstate(all="ignore"):
        bits = samples(kind, [], count)
        x = np.concatenate(
            [random.uniform(0, 30, count), random.uniform(0.9, 1.1, count), bits, -np.abs(bits), pairs[0]]
        )
        y = np.concatenate([random.uniform(-30, 30, count), random.uniform(-900, 900, count)])
        whole = np.round(random.uniform(-40, 40, len(bits)))
        y = np.concatenate([y, random.uniform(-2, 2, len(bits)), whole, pairs[1]])
        x, y = x.astype(kind), y.astype(kind)
        true = np.power(more_exact(x), more_exact(y))
    found = {level: distance(run(f"host:{level}", "powf", x, y), true) for level in LEVELS}
    print(kind.__name__, found)
    assert max(found.values()) <= 1.3


def test_error_of_erf() -> None:
    x = samples(np.float32, [(-5, 5), (-1, 1), (-1e-3, 1e-3)], 20_000)
    true = np.array([math.erf(value) for value in x.tolist()])
    found = {level: distance(run(f"host:{level}", "erf", x), true) for level in LEVELS}
    print(found)
    assert max(found.values()) <= 2.5


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("flags", ["arcp", "ninf", "nnan,arcp", "reassoc,arcp,contract"])
def test_flags_that_allow_no_estimate_leave_reciprocal_roots_right(flags: str, level: str) -> None:
    """The processor's estimate knows neither 0 nor infinity nor denormal numbers."""
    text = PROGRAM.format(op="rsqrt", type="f32", operands=f"%a fastmath<{flags}>")
    compiled = offload.compile("module attributes {gpu.container_module} {" + text + "}", targets=[f"host:{level}"])
    x = samples(np.float32, [(0, 4), (0, 1e-37)], 200)  # with denormal numbers
    with np.errstate(all="ignore"):
        true = 1 / np.sqrt(more_exact(x))
        kept = (np.isfinite(x) & np.isfinite(true) | ("ninf" not in flags)) & ~(np.isnan(true) & ("nnan" in flags))
    out = np.empty_like(x)
    compiled.kernels.rsqrt_f32[math.ceil(len(x) / 256), 256](x, x, out, len(x))
    assert distance(out[kept], true[kept]) <= 1.5


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["floor", "ceil", "trunc", "round", "roundeven", "sqrt"])
def test_exact(op: str, kind: type) -> None:
    digits = 23 if kind == np.float32 else 52
    near = [sign * (2.0**power + part) for power in (-1, 0, 1, digits - 1, digits) for part in (-1, -0.5, 0, 0.5, 1)
            for sign in (1, -1)]  # fmt: skip
    x = np.concatenate([samples(kind, [(-4, 4), (-1e6, 1e6)], 20_000), np.array(near, kind)])
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.nextafter(x, kind(np.inf)), np.nextafter(x, kind(0))])
    references = {"round": lambda v: np.copysign(np.trunc(np.abs(v)) + (np.abs(v) % 1 >= 0.5), v), "roundeven": np.rint}
    with np.errstate(all="ignore"):
        true = np.where(np.isfinite(x), references.get(op, getattr(np, op, None))(x), x)
        true = np.sqrt(x) if op == "sqrt" else true
    for level in LEVELS:
        assert distance(run(f"host:{level}", op, x), more_exact(true)) == 0, level


def test_fused_multiply_add_rounds_once() -> None:
    x = samples(np.float32, [(-4, 4), (-1e-20, 1e-20), (1 - 1e-6, 1 + 1e-6)], 40_000)
    y = np.roll(x, 17)
    with np.errstate(all="ignore"):
        true = x.astype(np.longdouble) * y.astype(np.longdouble) + x.astype(np.longdouble)
        near = true.astype(np.float32)
    # Long double's sum is exact unless its parts are more than 2^16 apart; then the smaller is below half a unit.
    for level in LEVELS:
        got = run(f"host:{level}", "fma", x, y)
        np.testing.assert_array_equal(got, near, level)


@pytest.mark.parametrize("op", [*ONE, "powf"])
def test_a_result_does_not_depend_on_the_place_of_its_thread(op: str) -> None:
    """Vector body, remainder and single thread give the same bits."""
    for kind in (np.float32, np.float64):
        x = samples(kind, [(-3, 3), (-200, 200)], 500)[:1013]
        y = np.roll(x, 3)
        together = run(f"host:{LEVELS[-1]}", op, x, y)
        alone = np.concatenate([run(f"host:{LEVELS[-1]}", op, x[i : i + 1], y[i : i + 1]) for i in range(0, len(x), 7)])
        np.testing.assert_array_equal(together[::7], alone)


def test_far_angles_are_those_of_libm() -> None:
    x = np.array([0.5, 3e7, -2e6, 1.0, 1e30, np.inf, np.nan, 1e6] * 9, np.float32)
    with np.errstate(all="ignore"):
        true = np.sin(x.astype(np.longdouble))
    assert distance(run(f"host:{LEVELS[-1]}", "sin", x), true) <= 1.7


def test_libm_if_asked_for() -> None:
    source = "module attributes {gpu.container_module} {" + PROGRAM.format(op="exp", type="f32", operands="%a") + "}"
    assert "expf" in emit_text(source, "isa", ["host,libm"])
    assert "expf" not in emit_text(source, "isa", ["host"])


def test_vectors_of_near_angles_ask_nobody() -> None:
    """What libm is asked for lies behind a branch, which the vectorizer must not take for every lane."""
    source = "module attributes {gpu.container_module} {" + PROGRAM.format(op="sin", type="f32", operands="%a") + "}"
    text = emit_text(source, "llvm", [f"host:{LEVELS[-1]}"])
    assert "x float> @llvm.sin" not in text
    assert "call <" in text


HALVES = """
gpu.module @halves {
gpu.func @k(%x: memref<?xf64>, %a: memref<?xf16>, %down: memref<?xf16>, %fused: memref<?xf16>) kernel {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf64>
  %i = gpu.global_id x
  %inside = arith.cmpi ult, %i, %n : index
  scf.if %inside {
    %v = memref.load %x[%i] : memref<?xf64>
    %d = arith.truncf %v : f64 to f16
    memref.store %d, %down[%i] : memref<?xf16>
    %p = memref.load %a[%i] : memref<?xf16>
    %f = math.fma %p, %p, %d : f16
    memref.store %f, %fused[%i] : memref<?xf16>
  }
  gpu.return
} }
"""


@pytest.mark.parametrize("level", LEVELS)
def test_halves_are_rounded_once(level: str) -> None:
    """From f64, which no processor does in one step: next to what is as far from one half as from the next, too."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        middle = (halves.astype(np.float64) + np.nextafter(halves, np.float16(np.inf)).astype(np.float64)) / 2
        x = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), EDGES, FAR])
        x = np.concatenate([x, [65519.99999999999, 65520.0, -65520.0, 1e-8, 2.0**-25, np.nextafter(2.0**-25, 1)]])
        a = np.resize(np.random.default_rng(5).permutation(halves), len(x))
        down, fused = np.zeros_like(a), np.zeros_like(a)
        kernels = offload.compile(HALVES, targets=[f"host:{level}"]).kernels
        kernels.k[math.ceil(len(x) / 256), 256](x, a, down, fused)
        np.testing.assert_array_equal(down, x.astype(np.float16))
        exact = a.astype(np.float64) ** 2 + x.astype(np.float16).astype(np.float64)
        np.testing.assert_array_equal(fused, exact.astype(np.float16))
    assert (np.signbit(down[x == 0]) == np.signbit(x[x == 0])).all()
    assert "__truncdfhf2" not in emit_text(HALVES, "isa", [f"host:{level}"])
