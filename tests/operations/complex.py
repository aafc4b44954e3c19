"""The complex dialect: every operation for f32 and f64 parts, in kernels, against NumPy's wider complex numbers.

Errors are measured as the distance to the exact number in units of the last place of its absolute value: parts
much smaller than the whole may have fewer correct digits. Branch cuts, signs of zeros and numbers whose squares
leave the range of their type are cases of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, same

from offload.runtime import Library
from operations import Case

Function = Callable[..., Any]
PARTS = ("f32", "f64")


def wide(x: Any) -> Any:
    """The same numbers in a type with more digits and a larger range."""
    return x.astype(np.complex128 if x.dtype == np.complex64 else np.clongdouble)


def close(got: Any, exact: Any, units: float) -> None:
    """At most so many units of the last place of the absolute value away; not finite in the same way."""
    part = got.real.dtype
    with np.errstate(all="ignore"):
        near = exact.astype(got.dtype)
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(near))
        finite = np.isfinite(near)
        size = np.maximum(np.abs(exact[finite]), np.finfo(part).smallest_normal)
        error = np.abs(got[finite].astype(exact.dtype) - exact[finite]) / (size * np.finfo(part).eps)
    if error.size and error.max() > units:
        at = int(np.argmax(error))
        raise AssertionError(f"{got[finite][at]!r} where {exact[finite][at]!r} is right: {float(error[at]):.2f} units")


def _grid(part: str, values: list[float], seed: int, count: int = 200, scale: float = 2.0) -> Any:
    """Random numbers around 0 and all numbers with these parts."""
    kind = DTYPES[f"complex<{part}>"]
    random = np.random.default_rng(seed).normal(0, scale, (count, 2)).astype(DTYPES[part]).view(kind)[:, 0]
    real, imaginary = (axis.ravel() for axis in np.meshgrid(values, values))
    corners = np.empty(len(real), kind)
    corners.real, corners.imag = real, imaginary
    return np.concatenate([random, corners])


ORDINARY = [-2.5, -1.0, -0.25, 0.25, 1.0, 2.5]
ZEROS = [-1.5, -0.0, 0.0, 1.5]


def _sign(x: Any) -> Any:
    size = np.abs(x)
    return np.where(size == 0, x, x / np.where(size == 0, 1, size))


def _log1p(x: Any) -> Any:
    return np.log1p(x.astype(np.clongdouble))


# Function; corners; allowed units.
UNARY: dict[str, tuple[Function, list[float], float]] = {
    "neg": (np.negative, ZEROS, 0),
    "conj": (np.conj, ZEROS, 0),
    "exp": (np.exp, ZEROS, 4),
    "expm1": (np.expm1, ORDINARY, 6),
    "log": (np.log, ORDINARY, 4),
    "log1p": (_log1p, ORDINARY, 6),
    "sqrt": (np.sqrt, ZEROS, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), ORDINARY, 8),
    "sin": (np.sin, ZEROS, 8),
    "cos": (np.cos, ZEROS, 8),
    "tan": (np.tan, ZEROS, 8),
    "tanh": (np.tanh, ZEROS, 8),
    "sign": (_sign, ZEROS, 4),
}


def _unary(op: str, part: str) -> Case:
    kind = f"complex<{part}>"
    function, corners, units = UNARY[op]
    forms = [
        Form("plain", [kind], [kind], f"%r0 = complex.{op} %x0 : {{T}}"),
        Form("fast", [kind], [kind], f"%r0 = complex.{op} %x0 fastmath<fast> : {{T}}"),
    ]

    def run(library: Library) -> None:
        x = _grid(part, corners, 1)
        with np.errstate(all="ignore"):
            close(forms[0].run(library, x)[0], function(wide(x)), units)
            x = _grid(part, ORDINARY, 2)
            close(forms[1].run(library, x)[0], function(wide(x)), 64)

    return Case(f"complex.{op}", kind, module(forms), run)


def _real(op: str, part: str) -> Case:
    kind = f"complex<{part}>"
    form = Form("plain", [kind], [part], f"%r0 = complex.{op} %x0 : {{T}}")
    function = {"abs": np.abs, "angle": np.angle, "re": np.real, "im": np.imag}[op]

    def run(library: Library) -> None:
        x = _grid(part, ZEROS, 1)
        (got,) = form.run(library, x)
        if op in ("re", "im"):
            same(got, function(x))
            return
        exact = function(wide(x))
        np.testing.assert_allclose(got.astype(exact.dtype), exact, rtol=3 * float(np.finfo(got.dtype).eps), atol=0)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(exact))

    return Case(f"complex.{op}", kind, module([form]), run)


def _power(x: Any, y: Any) -> Any:
    return np.power(x, y)


BINARY: dict[str, tuple[Function, float]] = {
    "add": (np.add, 1),
    "sub": (np.subtract, 1),
    "mul": (np.multiply, 2),
    "div": (np.divide, 4),
    "pow": (_power, 40),
    "atan2": (lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)), 40),
}


def _binary(op: str, part: str) -> Case:
    kind = f"complex<{part}>"
    function, units = BINARY[op]
    forms = [
        Form("plain", [kind, kind], [kind], f"%r0 = complex.{op} %x0, %x1 : {{T}}"),
        Form("fast", [kind, kind], [kind], f"%r0 = complex.{op} %x0, %x1 fastmath<fast> : {{T}}"),
    ]

    def run(library: Library) -> None:
        x, y = (_grid(part, ORDINARY, seed, scale=1.0) for seed in (1, 2))
        y = y[np.random.default_rng(4).permutation(len(y))]
        with np.errstate(all="ignore"):
            exact = function(wide(x), wide(y))
            close(forms[0].run(library, x, y)[0], exact, units)
            close(forms[1].run(library, x, y)[0], exact, 200)

    return Case(f"complex.{op}", kind, module(forms), run)


def _powi(part: str) -> Case:
    kind = f"complex<{part}>"
    form = Form("plain", [kind, "i32"], [kind], "%r0 = complex.powi %x0, %x1 : {T}, {I}", (), {"I": "i32"})

    def run(library: Library) -> None:
        x = _grid(part, ORDINARY, 1, scale=1.0)
        y = np.random.default_rng(1).integers(-5, 6, len(x)).astype(np.int32)
        with np.errstate(all="ignore"):
            close(form.run(library, x, y)[0], np.power(wide(x), y.astype(wide(x).dtype)), 40)

    return Case("complex.powi", kind, module([form]), run)


def _comparison(op: str, part: str) -> Case:
    kind = f"complex<{part}>"
    form = Form("plain", [kind, kind], ["i1"], f"%r0 = complex.{op} %x0, %x1 : {{T}}")

    def run(library: Library) -> None:
        x = _grid(part, [0.0, -0.0, 1.0, float("nan")], 1)
        y = np.where(np.arange(len(x)) % 2 == 0, x, np.roll(x, 1))
        same(form.run(library, x, y)[0], x == y if op == "eq" else x != y)

    return Case(f"complex.{op}", kind, module([form]), run)


def _making(part: str) -> list[Case]:
    kind, other = f"complex<{part}>", {"f32": "i64", "f64": ""}[part]
    create = Form("plain", [part, part], [kind], "%r0 = complex.create %x0, %x1 : {R}")
    body = f"%c = complex.constant [1.5 : {part}, -2.0 : {part}] : {{T}}\n%r0 = complex.add %x0, %c : {{T}}"
    constant = Form("plain", [kind], [kind], body)

    def run_create(library: Library) -> None:
        x = _grid(part, [0.0, -0.0, float("inf"), float("nan")], 1)
        (got,) = create.run(library, x.real.copy(), x.imag.copy())
        np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))

    def run_constant(library: Library) -> None:
        x = _grid(part, ORDINARY, 1)
        same(constant.run(library, x)[0], x + DTYPES[kind](1.5 - 2j))

    cases = [
        Case("complex.create", kind, module([create]), run_create),
        Case("complex.constant", kind, module([constant]), run_constant),
    ]
    if other:
        cast = Form("plain", [kind], [other], "%r0 = complex.bitcast %x0 : {T} to {R}")

        def run_cast(library: Library) -> None:
            x = _grid(part, ORDINARY, 1)
            same(cast.run(library, x)[0], x.view(np.int64))

        cases.append(Case("complex.bitcast", f"{kind} to {other}", module([cast]), run_cast))
    return cases


def _range(op: str, part: str) -> Case:
    """Numbers whose squares are past the range of their type."""
    kind, result = f"complex<{part}>", part if op == "abs" else f"complex<{part}>"
    operands = "%x0, %x1" if op == "div" else "%x0"
    inputs = [kind] * (2 if op == "div" else 1)
    form = Form("plain", inputs, [result], f"%r0 = complex.{op} {operands} : {{T}}")

    def run(library: Library) -> None:
        exponent = 90 if part == "f32" else 900
        values = [scale * value for scale in (2.0**exponent, 2.0**-exponent) for value in (1.0, -1.5)]
        x = _grid(part, values, 1, 0)
        y = x[np.random.default_rng(3).permutation(len(x))]
        with np.errstate(all="ignore"):
            if op == "div":
                keep = np.abs(np.log2(np.abs(wide(x)) / np.abs(wide(y)))) < exponent
                x, y = x[keep], y[keep]
                close(form.run(library, x, y)[0], wide(x) / wide(y), 4)
            elif op == "abs":
                (got,) = form.run(library, x)
                np.testing.assert_allclose(got.astype(np.longdouble), np.abs(wide(x)), rtol=4 * np.finfo(got.dtype).eps)
            else:
                close(form.run(library, x)[0], {"sqrt": np.sqrt, "log": np.log, "sign": _sign}[op](wide(x)), 8)

    return Case(f"complex.{op}", f"{kind}, large and small", module([form]), run)


def _signs(op: str, part: str) -> Case:
    """On the branch cut the sign of a zero says from which side."""
    kind = f"complex<{part}>"
    form = Form("plain", [kind], [kind], f"%r0 = complex.{op} %x0 : {{T}}")

    def run(library: Library) -> None:
        x = np.empty(4, DTYPES[kind])
        x.real, x.imag = [-4, -4, 4, 4], [0.0, -0.0, 0.0, -0.0]
        (got,) = form.run(library, x)
        exact = {"sqrt": np.sqrt, "log": np.log}[op](x)
        np.testing.assert_allclose(got, exact, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(got.imag), np.signbit(exact.imag))

    return Case(f"complex.{op}", f"{kind}, branch cut", module([form]), run)


def _parts(op: str, part: str) -> Case:
    """Each part by its own last place: small imaginary parts stay, and what is infinite is no NaN beside a zero."""
    kind = f"complex<{part}>"
    form = Form("plain", [kind], [kind], f"%r0 = complex.{op} %x0 : {{T}}")

    def run(library: Library) -> None:
        size = [1e-15, 1e-9, 1e-4, 1e-2, 0.3, 1.0, 9.0, 30.0, 45.0, 80.0]
        signed = [0.0, -0.0, *size, *(-y for y in size)]
        x = _grid(part, signed, 1, 0)
        x = x[np.abs(x.real) < 10]
        near = {"sin": np.sin, "cos": np.cos}[op](wide(x))
        (got,) = form.run(library, x)
        for mine, right in ((got.real, near.real), (got.imag, near.imag)):
            np.testing.assert_allclose(mine.astype(right.dtype), right, rtol=8 * float(np.finfo(mine.dtype).eps))
            np.testing.assert_array_equal(np.signbit(mine), np.signbit(right))
        x = np.array([0, -0.0, 1], DTYPES[kind]) + DTYPES[kind](1j * np.finfo(DTYPES[part]).max)
        (got,) = form.run(library, x)
        assert not np.isnan(got.view(DTYPES[part])).any()

    return Case(f"complex.{op}", f"{kind}, small parts", module([form]), run)


CASES = [
    *(_unary(op, part) for op in UNARY for part in PARTS),
    *(_real(op, part) for op in ("abs", "angle", "re", "im") for part in PARTS),
    *(_binary(op, part) for op in BINARY for part in PARTS),
    *(_powi(part) for part in PARTS),
    *(_comparison(op, part) for op in ("eq", "neq") for part in PARTS),
    *(case for part in PARTS for case in _making(part)),
    *(_range(op, part) for op in ("abs", "div", "sqrt", "log", "sign") for part in PARTS),
    *(_signs(op, part) for op in ("sqrt", "log") for part in PARTS),
    *(_parts(op, part) for op in ("sin", "cos") for part in PARTS),
]
