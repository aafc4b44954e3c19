"""Floats of 4 to 8 bits: conversions of every number, against ml_dtypes; arithmetic; scaled conversions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numeric import DTYPES, Form, module, same

from offload.runtime import Library
from operations import Case, kernel

SHAPES: list[tuple[str, tuple[int, ...]]] = [("scalar", ()), ("vector", (4,)), ("matrix", (2, 2))]
EIGHT = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3", "f8E3M4", "f8E4M3B11FNUZ", "f8E8M0FNU")
# Without memory of their own: their bits are read from and written to bytes.
NARROW = {"f4E2M1FN": ml_dtypes.float4_e2m1fn, "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn}


def equal(got: Any, expected: Any) -> None:
    """Equal as numbers, with the sign of zero."""
    same(got.astype(np.float64), expected.astype(np.float64))


def _sources(source: str, target: Any) -> list[Any]:
    """Numbers around every number and every midpoint of the target, large, small and special ones."""
    bits = np.arange(256, dtype=np.uint8) if target not in NARROW.values() else np.arange(64, dtype=np.uint8)
    if target is ml_dtypes.float4_e2m1fn:
        bits = bits[:16]
    with np.errstate(all="ignore"):
        every = np.sort(bits.view(target).astype(np.float64))
        every = every[np.isfinite(every)]
        middle = (every[1:] + every[:-1]) / 2
        largest = every[-1]
        edge = np.array([largest * factor for factor in (1.01, 1.05, 1.1, 1.2, 1.3, 2, 1e3)])
        exact = np.concatenate([every, middle, edge, -edge])
        near = [exact, exact * (1 + 2.0**-9), exact * (1 - 2.0**-9), exact * (1 + 2.0**-50), exact * (1 - 2.0**-22)]
        special = np.array([np.inf, -np.inf, 1e30, -1e30, 1e-30, 0.0, -0.0])
        values = np.concatenate([*near, special]).astype(DTYPES[source])
    if target is not ml_dtypes.float4_e2m1fn and target not in NARROW.values():
        values = np.concatenate([values, np.array([np.nan], DTYPES[source])])
    if target is ml_dtypes.float8_e8m0fnu:  # ml_dtypes 0.5 rounds up all numbers between 2**-127 and 2**-126
        values = values[~((np.abs(values.astype(np.float64)) < 2.0**-125) & (values != 0))]
    values = np.resize(values, -(-len(values) // 4) * 4)
    return [values[start : start + 1024] for start in range(0, len(values), 1024)]


def _expected(x: Any, target: Any) -> Any:
    """ml_dtypes goes by way of float32: an odd last digit there keeps the side of a tie on which a float64 lies."""
    if x.dtype == np.float64:
        near = x.astype(np.float32)
        back, bits = near.astype(np.float64), near.view(np.uint32)
        down = np.where(np.abs(back) > np.abs(x), bits - np.uint32(1), bits)
        x = np.where((back != x) & ~np.isnan(x), down | np.uint32(1), bits).astype(np.uint32).view(np.float32)
    return x.astype(np.float32).astype(target)


def _narrow(source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], "%r0 = arith.truncf %x0 : {T} to {R}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        for x in _sources(source, DTYPES[target]):
            with np.errstate(all="ignore"):
                expected = _expected(x, DTYPES[target])
            for form in forms:
                equal(form.run(library, x)[0], expected)

    return Case("arith.truncf", f"{source} to {target}", module(forms), run)


def _widen(source: str, target: str) -> Case:
    forms = [Form(name, [source], [target], "%r0 = arith.extf %x0 : {T} to {R}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        x = np.arange(256, dtype=np.uint8).view(DTYPES[source])
        with np.errstate(all="ignore"):
            expected = x.astype(np.float32).astype(DTYPES[target])
        for form in forms:
            equal(form.run(library, x)[0], expected)

    return Case("arith.extf", f"{source} to {target}", module(forms), run)


def _registers(kind: str, width: int) -> list[Case]:
    types = {"N": kind, "B": f"i{width}", "F": "f32", "I": "i8"}
    down = """%n = arith.truncf %x0 : {T} to {N}
      %b = arith.bitcast %n : {N} to {B}
      %r0 = arith.extui %b : {B} to {R}"""
    up = """%b = arith.trunci %x0 : {T} to {B}
      %n = arith.bitcast %b : {B} to {N}
      %r0 = arith.extf %n : {N} to {R}"""
    narrow = [Form(name, ["f32"], ["i8"], down, shape, types) for name, shape in SHAPES]
    widen = [Form(name, ["i8"], ["f32"], up, shape, types) for name, shape in SHAPES]
    dtype: Any = NARROW[kind]

    def run_narrow(library: Library) -> None:
        for x in _sources("f32", dtype):
            for form in narrow:
                (got,) = form.run(library, x)
                equal(got.view(np.uint8).view(dtype), _expected(x, dtype))

    def run_widen(library: Library) -> None:
        x = np.arange(1 << width, dtype=np.int8)
        for form in widen:
            equal(form.run(library, x)[0], x.view(np.uint8).view(dtype).astype(np.float32))

    return [
        Case("arith.truncf", f"f32 to {kind}, in registers", module(narrow), run_narrow),
        Case("arith.extf", f"{kind} to f32, in registers", module(widen), run_widen),
    ]


def _arithmetic(op: str, kind: str) -> Case:
    forms = [Form(name, [kind, kind], [kind], f"%r0 = arith.{op} %x0, %x1 : {{T}}", shape) for name, shape in SHAPES]
    function = {"addf": np.add, "mulf": np.multiply, "divf": np.divide, "maximumf": np.maximum}[op]

    def run(library: Library) -> None:
        random = np.random.default_rng(1).integers(0, 256, (2, 512), np.uint8)
        x, y = (part.view(DTYPES[kind]) for part in random)
        with np.errstate(all="ignore"):
            expected = function(x.astype(np.float32), y.astype(np.float32)).astype(DTYPES[kind])
        for form in forms:
            (got,) = form.run(library, x, y)
            np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))

    return Case(f"arith.{op}", kind, module(forms), run)


def _function(kind: str) -> Case:
    forms = [Form(name, [kind], [kind], "%r0 = math.exp %x0 : {T}", shape) for name, shape in SHAPES]

    def run(library: Library) -> None:
        x = np.arange(256, dtype=np.uint8).view(DTYPES[kind])
        with np.errstate(all="ignore"):
            expected = np.exp(x.astype(np.float64)).astype(DTYPES[kind])
        for form in forms:
            equal(form.run(library, x)[0], expected)

    return Case("math.exp", kind, module(forms), run)


def _compare(kind: str) -> Case:
    forms = [
        Form(name, [kind, kind], ["i1"], "%r0 = arith.cmpf olt, %x0, %x1 : {T}", shape) for name, shape in SHAPES[:2]
    ]

    def run(library: Library) -> None:
        x, y = (part.view(DTYPES[kind]) for part in np.random.default_rng(1).integers(0, 256, (2, 512), np.uint8))
        for form in forms:
            same(form.run(library, x, y)[0], x.astype(np.float32) < y.astype(np.float32))

    return Case("arith.cmpf", kind, module(forms), run)


def _constant(kind: str) -> Case:
    body = "%c = arith.constant 1.5 : {T}\n%r0 = arith.addf %x0, %c : {T}"
    text = body.replace("1.5 : {T}", "dense<1.5> : {T}")
    forms = [Form("scalar", [kind], [kind], body), Form("vector", [kind], [kind], text, (4,))]

    def run(library: Library) -> None:
        x = np.arange(256, dtype=np.uint8).view(DTYPES[kind])
        with np.errstate(all="ignore"):
            expected = (x.astype(np.float32) + 1.5).astype(DTYPES[kind])
        for form in forms:
            (got,) = form.run(library, x)
            np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))

    return Case("arith.constant", kind, module(forms), run)


def _integers(kind: str) -> Case:
    body = """%f = arith.sitofp %x0 : {T} to {F}
      %r0 = arith.fptosi %f : {F} to {T}"""
    forms = [Form(name, ["i32"], ["i32"], body, shape, {"F": kind}) for name, shape in SHAPES]

    def run(library: Library) -> None:
        x = np.arange(-12, 12, dtype=np.int32)
        expected = x.astype(np.float32).astype(DTYPES[kind]).astype(np.int32)
        for form in forms:
            same(form.run(library, x)[0], expected)

    return Case("arith.sitofp", f"i32 to {kind} and back", module(forms), run)


def _scaling(element: str, wide: str) -> list[Case]:
    types = {"S": "f8E8M0FNU", "E": element}
    up = [
        Form(
            name,
            [wide, "f8E8M0FNU", element],
            [wide],
            "%r0 = arith.scaling_extf %x2, %x1 : {E}, {S} to {T}",
            shape,
            types,
        )
        for name, shape in SHAPES
    ]
    down = [
        Form(
            name, [wide, "f8E8M0FNU"], [element], "%r0 = arith.scaling_truncf %x0, %x1 : {T}, {S} to {E}", shape, types
        )
        for name, shape in SHAPES
    ]
    scales = np.resize(np.arange(120, 134, dtype=np.uint8), 256).view(DTYPES["f8E8M0FNU"])
    every = np.arange(256, dtype=np.uint8).view(DTYPES[element])

    def run_up(library: Library) -> None:
        with np.errstate(all="ignore"):
            expected = (every.astype(np.float32) * scales.astype(np.float32)).astype(DTYPES[wide])
        for form in up:
            (got,) = form.run(library, np.zeros(256, DTYPES[wide]), scales, every)
            np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))

    def run_down(library: Library) -> None:
        x = np.random.default_rng(1).normal(0, 4, 256).astype(DTYPES[wide])
        with np.errstate(all="ignore"):
            expected = (x.astype(np.float64) / scales.astype(np.float64)).astype(DTYPES[wide]).astype(DTYPES[element])
        for form in down:
            equal(form.run(library, x, scales)[0], expected)

    return [
        Case("arith.scaling_extf", f"{element} to {wide}", module(up), run_up),
        Case("arith.scaling_truncf", f"{wide} to {element}", module(down), run_down),
    ]


def _refused_direction(kind: str) -> Case:
    source = kernel(
        f"%i = gpu.thread_id x\n%v = memref.load %x[%i] : memref<?xf32>\n"
        f"%n = arith.truncf %v toward_zero : f32 to {kind} // here\nmemref.store %n, %y[%i] : memref<?x{kind}>",
        f"%x: memref<?xf32>, %y: memref<?x{kind}>",
    )
    reason = f"conversions to '{kind}' round to nearest, ties to even, only"
    return Case(
        "arith.truncf", f"f32 to {kind}, toward_zero", source, None, dict.fromkeys(("nvvm", "rocdl", "host"), reason)
    )


CASES = [
    *(_narrow(source, kind) for kind in EIGHT for source in ("f16", "bf16", "f32", "f64")),
    *(_widen(kind, target) for kind in EIGHT for target in ("f16", "bf16", "f32", "f64")),
    *(case for kind, width in (("f4E2M1FN", 4), ("f6E2M3FN", 6), ("f6E3M2FN", 6)) for case in _registers(kind, width)),
    *(_arithmetic(op, kind) for op in ("addf", "mulf", "divf", "maximumf") for kind in EIGHT[:4]),
    *(_function(kind) for kind in EIGHT[:4]),
    *(_compare(kind) for kind in EIGHT),
    *(_constant(kind) for kind in EIGHT[:4]),
    *(_integers(kind) for kind in EIGHT[:4]),
    *(case for element in ("f8E4M3FN", "f8E5M2") for wide in ("f32", "bf16") for case in _scaling(element, wide)),
    _refused_direction("f8E5M2"),
]
