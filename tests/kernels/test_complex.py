"""Functions of complex numbers against those of twice the precision, where MLIR's own lowerings lose or overflow."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
import pytest
from compiling import on_host
from emulator.running import running_on

KERNEL = """
  gpu.func @{op}(%x: memref<?x2x{type}>, %out: memref<?x2x{type}>) kernel {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %i = gpu.block_id x
    %re = memref.load %x[%i, %zero] : memref<?x2x{type}>
    %im = memref.load %x[%i, %one] : memref<?x2x{type}>
    %z = complex.create %re, %im : complex<{type}>
    %w = complex.{op} %z : complex<{type}>
    %u = complex.re %w : complex<{type}>
    %v = complex.im %w : complex<{type}>
    memref.store %u, %out[%i, %zero] : memref<?x2x{type}>
    memref.store %v, %out[%i, %one] : memref<?x2x{type}>
    gpu.return
  }}"""
OPS = ("sin", "cos", "log")
DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32}
LARGE = {
    "f16": (11.0, 11.5, 11.8),
    "f32": (44.0, 88.5, 89.2),
}  # some of whose exponentials do not fit, but for their halves


def source(kind: str) -> str:
    return "gpu.module @m {" + "".join(KERNEL.format(op=op, type=kind) for op in OPS) + "}"


def points(kind: str) -> Any:
    sizes = [0.0, 1e-3, 0.5, 0.6, 0.8, 1.0, 3.0, 19.9, 20.1, *LARGE[kind]]
    parts = [sign * size for size in sizes for sign in (1, -1)]
    circle = np.exp(1j * np.linspace(0, 6, 50)) * np.linspace(0.999, 1.001, 50)
    pairs = [(x, y) for x in parts for y in parts if x or y] + list(zip(circle.real, circle.imag, strict=True))
    return np.array(pairs, DTYPES[kind])


def log_of_size(re: float, im: float) -> Any:
    """Near the unit circle, in twice the digits that a product of two float32 needs."""
    return np.log1p(np.longdouble(re) * re + np.longdouble(im) * im - 1) / 2


def check(library: Any, kind: str) -> None:
    dtype = DTYPES[kind]
    x = points(kind)
    for op in OPS:
        out = np.zeros_like(x)
        library.kernels[op][len(x), 1](x, out)
        exact = [getattr(cmath, op)(complex(re, im)) for re, im in x.astype(np.float64)]
        with np.errstate(over="ignore"):
            expected = np.array([(w.real, w.imag) for w in exact])
            infinite = np.isinf(expected.astype(dtype))
        np.testing.assert_array_equal(np.isinf(out), infinite)
        np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))
        tolerance = 8 * np.finfo(dtype).eps * np.maximum(np.abs(exact), np.finfo(dtype).tiny)
        error = np.abs(out.astype(np.float64) - expected)
        assert (error <= tolerance[:, None])[~infinite].all(), op
        if op == "log":
            wanted = np.array([log_of_size(re, im) for re, im in x[-50:].astype(np.float64)])
            np.testing.assert_allclose(out[-50:, 0], wanted, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("kind", DTYPES)
def test_on_the_host(kind: str) -> None:
    check(on_host(source(kind)), kind)


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_on_emulated_gpus(chip: str) -> None:
    with running_on(chip, source("f32")) as library:
        check(library, "f32")
