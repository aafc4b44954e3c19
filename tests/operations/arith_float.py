"""The arith dialect on floats of 16 to 64 bits: arithmetic, comparisons, minima and maxima, conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, numbers, same, specials

from offload.runtime import Library
from operations import Case

TYPES = ("f16", "bf16", "f32", "f64")
SHAPES: list[tuple[str, tuple[int, ...]]] = [("scalar", ()), ("vector", (4,)), ("matrix", (2, 2))]
WIDER = {"f16": np.float64, "bf16": np.float64, "f32": np.float64, "f64": np.longdouble}


def pairs(kind: str) -> list[Any]:
    """Every pair of special numbers, and random ones; at most 1024 threads' worth."""
    special = np.array(specials(DTYPES[kind]))
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    random = np.random.default_rng(11).normal(0, 3, (2, 1020 - len(special)))
    keep = np.random.default_rng(12).permutation(len(x))[: len(special)]
    with np.errstate(all="ignore"):
        result = [np.concatenate([part[keep], own, part])[:1020] for part, own in zip((x, y), random, strict=False)]
        return [part.astype(DTYPES[kind]) for part in result]


def _nan_wins(function: Any) -> Callable[[Any, Any], Any]:
    def choose(x: Any, y: Any) -> Any:
        zeros = (x == 0) & (y == 0)
        sign = np.signbit(x) & np.signbit(y) if function is np.maximum else np.signbit(x) | np.signbit(y)
        return np.where(zeros, np.where(sign, -0.0, 0.0), function(x, y))

    return choose


def _remainder(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": _remainder,
    "maximumf": _nan_wins(np.maximum),
    "minimumf": _nan_wins(np.minimum),
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


def _arithmetic(op: str, kind: str) -> Case:
    body = f"%r0 = arith.{op} %x0, %x1 : {{T}}"
    forms = [Form(name, [kind, kind], [kind], body, shape) for name, shape in SHAPES]
    forms.append(Form("fast", [kind, kind], [kind], f"%r0 = arith.{op} %x0, %x1 fastmath<fast> : {{T}}"))
    function = ARITHMETIC[op]

    def run(library: Library) -> None:
        x, y = pairs(kind)
        with np.errstate(all="ignore"):
            if kind == "f64":
                expected = function(x, y)
            else:  # One rounding, to the narrow type: twice the digits and two are enough (remf is exact).
                expected = function(x.astype(WIDER[kind]), y.astype(WIDER[kind])).astype(DTYPES[kind])
            for form in forms:
                if form.name == "fast":
                    a, b = (numbers(kind, 1, 4, 64, seed, special=False) for seed in (1, 2))
                    (got,) = form.run(library, a, b)
                    wide = function(a.astype(np.float64), b.astype(np.float64))
                    size = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-6, "f64": 1e-14}[kind]
                    np.testing.assert_allclose(got.astype(np.float64), wide, rtol=size, atol=size)
                    continue
                (got,) = form.run(library, x, y)
                if op in ("maxnumf", "minnumf"):  # Either zero may come out of 0 and -0.
                    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
                else:
                    same(got, expected)

    return Case(f"arith.{op}", kind, module(forms), run)


def _negf(kind: str) -> Case:
    forms = [Form(name, [kind], [kind], "%r0 = arith.negf %x0 : {T}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        x, _ = pairs(kind)
        for form in forms:
            same(form.run(library, x)[0], (-x.astype(np.float64)).astype(DTYPES[kind]))

    return Case("arith.negf", kind, module(forms), run)


def _comparisons() -> dict[str, Callable[[Any, Any], Any]]:
    ordered: dict[str, Any] = {
        "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
        "ne": np.not_equal,
    }  # fmt: skip
    result: dict[str, Callable[[Any, Any], Any]] = {
        "false": lambda x, y: np.zeros(len(x), bool),
        "true": lambda x, y: np.ones(len(x), bool),
        "ord": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
        "uno": lambda x, y: np.isnan(x) | np.isnan(y),
    }
    for name, function in ordered.items():
        result[f"o{name}"] = lambda x, y, f=function: f(x, y) & ~(np.isnan(x) | np.isnan(y))
        result[f"u{name}"] = lambda x, y, f=function: f(x, y) | np.isnan(x) | np.isnan(y)
    return result


COMPARISONS = _comparisons()


def _cmpf(kind: str) -> Case:
    forms = [
        Form(f"{predicate}_{name}", [kind, kind], ["i1"], f"%r0 = arith.cmpf {predicate}, %x0, %x1 : {{T}}", shape)
        for predicate in COMPARISONS
        for name, shape in SHAPES[:2]
    ]

    def run(library: Library) -> None:
        x, y = pairs(kind)
        for form in forms:
            predicate = form.name.split("_")[0]
            same(form.run(library, x, y)[0], COMPARISONS[predicate](x.astype(np.float64), y.astype(np.float64)))

    return Case("arith.cmpf", kind, module(forms), run)


def _every(kind: str) -> list[Any]:
    """All numbers of a 16-bit type, or many of a wider one with all its special ones, in launches' portions."""
    if DTYPES[kind] is np.float16 or kind == "bf16":
        whole = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[kind])
    else:
        bits = np.random.default_rng(2).integers(0, 1 << (32 if kind == "f32" else 64), 4096, np.uint64, endpoint=False)
        random = bits.astype(np.uint32).view(np.float32) if kind == "f32" else bits.view(np.float64)
        small = np.random.default_rng(3).normal(0, 1, 4096) * 2.0 ** np.random.default_rng(4).integers(-160, 160, 4096)
        with np.errstate(all="ignore"):
            whole = np.concatenate([random, small.astype(random.dtype), numbers(kind, -4, 4)])
    return [part for part in np.array_split(whole[: len(whole) // 4 * 4], range(1024, len(whole), 1024)) if len(part)]


def _convert(op: str, source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], f"%r0 = arith.{op} %x0 : {{T}} to {{R}}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        for x in _every(source):
            with np.errstate(all="ignore"):
                expected = _to_bfloat16(x) if target == "bf16" and source == "f64" else x.astype(DTYPES[target])
            for form in forms:
                same(form.run(library, x)[0], expected)

    return Case(f"arith.{op}", f"{source} to {target}", module(forms), run)


def _to_bfloat16(x: Any) -> Any:
    """Rounded once: ml_dtypes goes by way of float32."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32)
    down = np.where(np.abs(back) > np.abs(x), bits - np.uint32(1), bits)
    odd = np.where((back != x) & ~np.isnan(x), down | np.uint32(1), bits).astype(np.uint32)
    return odd.view(np.float32).astype(DTYPES["bf16"])


def _directed(mode: str, source: str, target: str) -> Case:
    text = f"%r0 = arith.truncf %x0 {mode} : {{T}} to {{R}}"
    forms = [Form(name, [source], [target], text, shape) for name, shape in SHAPES[:2]]
    dtype: Any = DTYPES[target]

    def run(library: Library) -> None:
        for x in _every(source):
            with np.errstate(all="ignore"):
                wide = x.astype(np.float64)
                near = x.astype(dtype) if not (target == "bf16" and source == "f64") else _to_bfloat16(x)
                back = near.astype(np.float64)
                bits = near.view(np.uint32 if target == "f32" else np.uint16)
                one = bits.dtype.type(1)
                inwards, outwards = (bits - one).view(dtype), (bits + one).view(dtype)
                negative = np.signbit(back)
                if mode == "toward_zero":
                    expected = np.where(np.abs(back) > np.abs(wide), inwards, near)
                elif mode == "downward":
                    expected = np.where(back > wide, np.where(negative, outwards, inwards), near)
                elif mode == "upward":
                    expected = np.where(back < wide, np.where(negative, inwards, outwards), near)
                else:
                    above = np.abs(outwards.astype(np.float64)) - np.abs(wide)
                    below = np.abs(wide) - np.abs(back)
                    expected = np.where((below > 0) & (below == above), outwards, near)
            for form in forms:
                same(form.run(library, x)[0], expected)

    return Case("arith.truncf", f"{source} to {target}, {mode}", module(forms), run)


def _from_integer(op: str, source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], f"%r0 = arith.{op} %x0 : {{T}} to {{R}}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        if source == "i1":
            x = np.array([False, True, True, False])
            expected = np.array([0.0, 1, 1, 0]) * (-1 if op == "sitofp" else 1)
        else:
            info = np.iinfo(DTYPES[source])
            x = np.random.default_rng(1).integers(info.min, info.max, 996, DTYPES[source], endpoint=True)
            x = np.concatenate([x, np.array([0, 1, info.min, info.max], DTYPES[source])])
            expected = x if op == "sitofp" else x.view(f"u{x.dtype.itemsize}")
        with np.errstate(all="ignore"):
            if target in ("f16", "bf16") and source in ("i32", "i64", "index"):
                x = x >> (x.dtype.itemsize * 8 - 20) if target == "f16" else x >> (x.dtype.itemsize * 8 - 24)
                expected = x if op == "sitofp" else (y := x & np.array((1 << 20) - 1, x.dtype))
                x = expected if op == "sitofp" else y
            want = (
                expected.astype(np.float64).astype(DTYPES[target]) if target != "f64" else expected.astype(np.float64)
            )
            if target == "f32" and source != "i1":
                want = expected.astype(np.float32)
        for form in forms:
            (got,) = form.run(library, x)
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))

    return Case(f"arith.{op}", f"{source} to {target}", module(forms), run)


def _to_integer(op: str, source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], f"%r0 = arith.{op} %x0 : {{T}} to {{R}}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        bits = 1 if target == "i1" else DTYPES[target]().itemsize * 8
        low, high = (0, 2.0**bits) if op == "fptoui" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
        high = min(high, 60000.0) if source == "f16" else high
        low = max(low, -60000.0)
        x = np.random.default_rng(1).uniform(low, high * 0.99, 400)
        near = np.random.default_rng(2).uniform(max(low, -3), min(high * 0.99, 3), 96)
        x = np.concatenate([x, near, [0.0, -0.0, 0.99, -1.0 if target == "i1" and op == "fptosi" else 1.5]])
        x = x.astype(DTYPES[source])
        whole = [int(value) for value in np.trunc(x.astype(np.float64))]
        expected = np.array(
            [value - (1 << bits) if value >> (bits - 1) == 1 else value for value in whole], DTYPES[target]
        )
        for form in forms:
            same(form.run(library, x)[0], expected)

    return Case(f"arith.{op}", f"{source} to {target}", module(forms), run)


def _bitcast(source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], "%r0 = arith.bitcast %x0 : {T} to {R}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        integer = np.random.default_rng(1).integers(0, 256, 512, np.uint8).view(DTYPES[source])
        for form in forms:
            (got,) = form.run(library, integer)
            same(got.view(np.uint8), integer.view(np.uint8))

    return Case("arith.bitcast", f"{source} to {target}", module(forms), run)


WIDENINGS = [(a, b) for a in ("f16", "bf16", "f32") for b in ("f32", "f64") if a != b]
MODES = ("toward_zero", "downward", "upward", "to_nearest_away")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")

CASES = [
    *(_arithmetic(op, kind) for op in ARITHMETIC for kind in TYPES),
    *(_negf(kind) for kind in TYPES),
    *(_cmpf(kind) for kind in TYPES),
    *(_convert("extf", a, b) for a, b in WIDENINGS),
    *(_convert("truncf", b, a) for a, b in WIDENINGS),
    *(_directed(mode, b, a) for a, b in WIDENINGS for mode in MODES),
    *(_from_integer(op, a, b) for op in ("sitofp", "uitofp") for a in INTEGERS for b in TYPES),
    *(_to_integer(op, a, b) for op in ("fptosi", "fptoui") for a in TYPES for b in INTEGERS),
    *(_bitcast(a, b) for a, b in (("f32", "i32"), ("i32", "f32"), ("f16", "i16"), ("i16", "bf16"), ("f64", "i64"))),
]
