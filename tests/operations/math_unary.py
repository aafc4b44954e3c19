"""Functions of one float: scalars, vectors of rank 1 and 2, with and without fast math, against NumPy's long doubles."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, numbers, same, within

from offload.runtime import Library
from operations import Case

Function = Callable[[Any], Any]


def _round(x: Any) -> Any:
    whole = np.trunc(x)
    away = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)
    return np.copysign(away, x)


def _of_doubles(function: Callable[[float], float]) -> Function:
    return lambda x: np.array([function(float(value)) for value in x])


ANY, POSITIVE, UNIT, ABOVE_ONE, LARGE = (-8.0, 8.0), (0.001, 30.0), (-0.99, 0.99), (1.01, 20.0), (-1e4, 1e4)

# Function of long doubles; range of arguments; units of the last place of f32 and f64 (glibc's documented errors,
# rounded up); what stands after the comma is left to rounding in f32 for narrower types.
EXACT = 0.5
FUNCTIONS: dict[str, tuple[Function, tuple[float, float], float]] = {
    "absf": (np.abs, ANY, 0),
    "acos": (np.arccos, UNIT, 1.5),
    "acosh": (np.arccosh, ABOVE_ONE, 3),
    "asin": (np.arcsin, UNIT, 1.5),
    "asinh": (np.arcsinh, ANY, 3),
    "atan": (np.arctan, ANY, 1.5),
    "atanh": (np.arctanh, UNIT, 3),
    "cbrt": (np.cbrt, ANY, 4.5),
    "ceil": (np.ceil, ANY, 0),
    "cos": (np.cos, LARGE, 1),
    "cosh": (np.cosh, ANY, 3),
    "erf": (_of_doubles(math.erf), ANY, 2.5),
    "erfc": (_of_doubles(math.erfc), ANY, 6),
    "exp": (np.exp, ANY, 1),
    "exp2": (np.exp2, ANY, 1),
    "expm1": (np.expm1, ANY, 2),
    "floor": (np.floor, ANY, 0),
    "log": (np.log, POSITIVE, 1),
    "log10": (np.log10, POSITIVE, 2.5),
    "log1p": (np.log1p, POSITIVE, 2),
    "log2": (np.log2, POSITIVE, 1.5),
    "round": (_round, ANY, 0),
    "roundeven": (np.rint, ANY, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 1.5),
    "sin": (np.sin, LARGE, 1),
    "sinh": (np.sinh, ANY, 3),
    "sqrt": (np.sqrt, POSITIVE, EXACT),
    "tan": (np.tan, LARGE, 1.5),
    "tanh": (np.tanh, ANY, 3),
    "trunc": (np.trunc, ANY, 0),
}

TYPES = ("f16", "bf16", "f32", "f64")


def within_fast(op: str, backend: str, got: Any, exact: Any) -> None:
    """What flags of fast math leave of accuracy. NVIDIA's sines and cosines are off by up to 2**-20 anywhere."""
    if backend == "cuda" and op in ("sin", "cos", "tan"):
        slope = 1 + exact**2 if op == "tan" else 1
        near = np.abs(got.astype(np.float64) - exact) <= 2.0**-20 * slope
        got, exact = got[~near], exact[~near]
    within(got, exact, 8, zero_signs=False)


def _forms(op: str, kind: str) -> list[Form]:
    body = f"%r0 = math.{op} %x0 : {{T}}"
    fast = f"%r0 = math.{op} %x0 fastmath<fast> : {{T}}"
    return [
        Form("scalar", [kind], [kind], body),
        Form("vector", [kind], [kind], body, (4,)),
        Form("matrix", [kind], [kind], body, (2, 2)),
        Form("fast", [kind], [kind], fast),
        Form("fast_vector", [kind], [kind], fast, (4,)),
    ]


def unary(op: str, kind: str) -> Case:
    """The case of a function for an element type."""
    function, (low, high), ulps = FUNCTIONS[op]
    forms = _forms(op, kind)
    narrow = kind in ("f16", "bf16")

    def run(library: Library) -> None:
        with np.errstate(all="ignore"):
            for form in forms:
                x = numbers(kind, low, high, special="fast" not in form.name)
                exact = function(x.astype(np.float64).astype(np.longdouble))
                (got,) = form.run(library, x)
                if "fast" in form.name:
                    within_fast(op, library.backend, got, exact)
                elif ulps == 0:
                    same(got, exact.astype(np.float64).astype(DTYPES[kind]))
                else:
                    within(got, exact, 0.501 if narrow else ulps)

    return Case(f"math.{op}", kind, module(forms), run)


def _sincos(kind: str) -> Case:
    def form(name: str, flags: str = "", shape: tuple[int, ...] = ()) -> Form:
        return Form(name, [kind], [kind, kind], f"%r0, %r1 = math.sincos %x0{flags} : {{T}}", shape)

    forms = [form("scalar"), form("vector", "", (4,)), form("matrix", "", (2, 2)), form("fast", " fastmath<fast>")]

    def run(library: Library) -> None:
        with np.errstate(all="ignore"):
            for each in forms:
                x = numbers(kind, -1e4, 1e4, special=each.name != "fast")
                wide = x.astype(np.float64).astype(np.longdouble)
                for name, got, exact in zip(
                    ("sin", "cos"), each.run(library, x), (np.sin(wide), np.cos(wide)), strict=True
                ):
                    if each.name == "fast":
                        within_fast(name, library.backend, got, exact)
                    else:
                        within(got, exact, 1)

    return Case("math.sincos", kind, module(forms), run)


def _classification(op: str, kind: str) -> Case:
    body = f"%r0 = math.{op} %x0 : {{T}}"
    forms = [
        Form("scalar", [kind], ["i1"], body),
        Form("vector", [kind], ["i1"], body, (4,)),
        Form("matrix", [kind], ["i1"], body, (2, 2)),
        # Flags allow anything for NaN, but bits are tested: the answer stays right.
        Form("fast", [kind], ["i1"], f"%r0 = math.{op} %x0 {{{{fastmath = #arith.fastmath<fast>}}}} : {{T}}"),
    ]

    def run(library: Library) -> None:
        x = numbers(kind, -8, 8)
        wide = x.astype(np.float64)
        smallest = float(np.abs(wide[np.abs(wide) > 0]).min())
        normal = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}[kind]
        assert smallest < normal
        expected = {
            "isnan": np.isnan(wide),
            "isinf": np.isinf(wide),
            "isfinite": np.isfinite(wide),
            "isnormal": np.isfinite(wide) & (np.abs(wide) >= normal),
        }[op]
        for form in forms:
            same(form.run(library, x)[0], expected)

    return Case(f"math.{op}", kind, module(forms), run)


CASES = [
    *(unary(op, kind) for op in FUNCTIONS for kind in TYPES),
    *(_sincos(kind) for kind in TYPES),
    *(_classification(op, kind) for op in ("isnan", "isinf", "isfinite", "isnormal") for kind in TYPES),
]
