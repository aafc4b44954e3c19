"""Functions of two and three floats, and powers with integer exponents, against NumPy's long doubles."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, numbers, same, specials, within

from offload.runtime import Library
from operations import Case

TYPES = ("f16", "bf16", "f32", "f64")


def _forms(body: str, inputs: list[str]) -> list[Form]:
    """``body`` has ``{flags}`` where flags of fast math go."""
    plain, fast = body.replace("{flags}", ""), body.replace("{flags}", " fastmath<fast>")
    return [
        Form("scalar", inputs, inputs[:1], plain),
        Form("vector", inputs, inputs[:1], plain, (4,)),
        Form("matrix", inputs, inputs[:1], plain, (2, 2)),
        Form("fast", inputs, inputs[:1], fast),
    ]


def _pairs(kind: str, low: float, high: float) -> list[Any]:
    """Random pairs, and every pair of special numbers."""
    special = np.array(specials(DTYPES[kind]))
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    random = np.random.default_rng(5).uniform(low, high, (2, 200))
    count = (len(x) + 200) // 4 * 4
    with np.errstate(all="ignore"):
        return [
            np.concatenate([part, own])[-count:].astype(DTYPES[kind]) for part, own in zip((x, y), random, strict=False)
        ]


def _wide(x: Any) -> Any:
    return x.astype(np.float64).astype(np.longdouble)


def _binary(op: str, kind: str) -> Case:
    forms = _forms(f"%r0 = math.{op} %x0, %x1{{flags}} : {{T}}", [kind, kind])
    function = {"atan2": np.arctan2, "copysign": np.copysign, "powf": np.power}[op]

    def run(library: Library) -> None:
        for form in forms:
            x, y = numbers(kind, 0.1, 4, 128, 1, False), numbers(kind, 0.1, 4, 128, 2, False)
            if form.name != "fast":
                chunks = [np.array_split(part, range(400, len(part), 400)) for part in _pairs(kind, -6, 6)]
            else:
                chunks = [[x], [y]]
            for a, b in zip(*chunks, strict=False):
                with np.errstate(all="ignore"):
                    exact = function(_wide(a), _wide(b))
                (got,) = form.run(library, a, b)
                if op == "copysign":
                    same(got, exact.astype(np.float64).astype(DTYPES[kind]))
                else:
                    within(got, exact, 8 if form.name == "fast" else 0.501 if "16" in kind else 1.5)

    return Case(f"math.{op}", kind, module(forms), run)


def _nearest(exact: Fraction, kind: str) -> Any:
    """Exactly rounded, ties to even."""
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[kind]
    if exact == 0:
        return 0.0
    power = abs(exact).numerator.bit_length() - abs(exact).denominator.bit_length() - digits
    scaled = abs(exact) / Fraction(2) ** power
    while scaled >= 2**digits:
        scaled, power = scaled / 2, power + 1
    while scaled < 2 ** (digits - 1):
        scaled, power = scaled * 2, power - 1
    size = round(scaled) * Fraction(2) ** power  # Python rounds fractions to even
    return float(size if exact > 0 else -size)


def _fma(kind: str) -> Case:
    forms = _forms("%r0 = math.fma %x0, %x1, %x2{flags} : {T}", [kind] * 3)
    forms.append(Form("of_vectors", [kind] * 3, [kind], "%r0 = vector.fma %x0, %x1, %x2 : {T}", (2, 2)))

    def run(library: Library) -> None:
        random = np.random.default_rng(3)
        a, b = (numbers(kind, -4, 4, 256, seed, False) for seed in (1, 2))
        # Sums near a tie: the third number moves a product by less than the wider type would keep.
        tie = np.where(np.arange(256) % 2 == 0, 1, -1) * 2.0 ** -random.integers(8, 60, 256)
        c = (tie if kind == "bf16" else random.uniform(-4, 4, 256)).astype(DTYPES[kind])
        expected = [
            _nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), kind)
            for x, y, z in zip(a, b, c, strict=False)
        ]
        for form in forms:
            (got,) = form.run(library, a, b, c)
            # `fast` lets the compiler drop what makes bf16's rounding exact.
            if form.name == "fast":
                size = float(np.finfo(np.float32).eps if kind == "f32" else 2.0**-52 if kind == "f64" else 2.0**-7)
                assert np.abs(got.astype(float) - np.array(expected)).max() <= 20 * size
            else:
                within(got, np.array(expected), 0.0)
            one = np.ones(4, DTYPES[kind])
            if form.name != "fast":
                special = np.array([np.inf, np.nan, -np.inf, 0], DTYPES[kind])
                np.testing.assert_array_equal(form.run(library, one, one, special)[0].astype(float),
                                              special.astype(float) + 1)  # fmt: skip

    return Case("math.fma", kind, module(forms), run)


def _clamp(kind: str) -> Case:
    forms = _forms("%r0 = math.clampf %x0 to [%x1, %x2]{flags} : {T}", [kind] * 3)

    def run(library: Library) -> None:
        for form in forms:
            x = numbers(kind, -4, 4, special=form.name != "fast")
            low, high = np.full_like(x, -1.5), np.full_like(x, 2.5)
            (got,) = form.run(library, x, low, high)
            same(got, np.minimum(np.maximum(x.astype(float), -1.5), 2.5))

    return Case("math.clampf", kind, module(forms), run)


def _fpowi(kind: str, exponent: str) -> Case:
    types = {"E": exponent}
    body = "%r0 = math.fpowi %x0, %x1{flags} : {T}, {E}"
    forms = [
        Form("scalar", [kind, exponent], [kind], body.replace("{flags}", ""), (), types),
        Form("vector", [kind, exponent], [kind], body.replace("{flags}", ""), (4,), types),
        Form("matrix", [kind, exponent], [kind], body.replace("{flags}", ""), (2, 2), types),
    ]

    def run(library: Library) -> None:
        info = np.iinfo(DTYPES[exponent])
        # The last are near 1: products of many of them, each rounded, are far from right.
        x = np.array(
            [
                0.0,
                -0.0,
                1.0,
                -1.0,
                2.0,
                -2.0,
                0.5,
                1.5,
                -0.75,
                3.0,
                -3.0,
                np.inf,
                -np.inf,
                np.nan,
                1 + 2**-7,
                1 - 2**-7,
            ],
            DTYPES[kind],
        )
        powers = [0, 1, -1, 2, 3, -3, 7, 20, 99, -101, info.max, info.max - 1, info.min]
        if info.bits > 8:
            powers += [-140, -1060, 7001]
        if info.bits == 64:
            powers += [2**53 + 1, -(2**53) - 1]
        base, power = (part.ravel() for part in np.meshgrid(x, np.array(powers, DTYPES[exponent])))
        for form in forms:
            with np.errstate(all="ignore"):
                exact = np.power(_wide(base), power.astype(np.longdouble))
            # glibc's powl of -inf and -2**63 is inf.
            exact = np.where(
                np.isinf(base.astype(float)) & (power < 0),
                np.where(power % 2 == 0, 0, np.copysign(0, base.astype(float))),
                exact,
            )
            within(form.run(library, base, power)[0], exact, 0.501 if "16" in kind else 1)

    return Case("math.fpowi", f"{kind}, {exponent}", module(forms), run)


CASES = [
    *(_binary(op, kind) for op in ("atan2", "copysign", "powf") for kind in TYPES),
    *(_fma(kind) for kind in TYPES),
    *(_clamp(kind) for kind in TYPES),
    *(_fpowi(kind, exponent) for kind in TYPES for exponent in ("i8", "i16", "i32", "i64")),
]
