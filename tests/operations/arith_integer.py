"""The arith dialect on integers: every operation for i1 to i64 and index, scalars and vectors."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, same

from offload.runtime import Library
from operations import Case

TYPES = ("i1", "i8", "i16", "i32", "i64", "index")
SHAPES: list[tuple[str, tuple[int, ...]]] = [("scalar", ()), ("vector", (4,)), ("matrix", (2, 2))]


def _width(kind: str) -> int:
    return 64 if kind == "index" else int(kind[1:])


def wrap(value: int, width: int) -> int:
    """The signed number with these low bits; of one bit, 0 and 1, as NumPy has booleans."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    return value & (1 << width) - 1


def signed(value: int, width: int) -> int:
    """The value an operation on signed numbers sees: of one bit, 0 and -1."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


# Of Python integers: signed operands, or unsigned where the name is in UNSIGNED.
BINARY: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "andi": lambda x, y: x & y,
    "ori": lambda x, y: x | y,
    "xori": lambda x, y: x ^ y,
    "maxsi": max,
    "minsi": min,
    "maxui": max,
    "minui": min,
    "divsi": quotient,
    "remsi": lambda x, y: x - quotient(x, y) * y,
    "divui": lambda x, y: x // y,
    "remui": lambda x, y: x % y,
    "ceildivsi": lambda x, y: -(-x // y),
    "ceildivui": lambda x, y: -(-x // y),
    "floordivsi": lambda x, y: x // y,
    "shli": lambda x, y: x << y,
    "shrsi": lambda x, y: x >> y,
    "shrui": lambda x, y: x >> y,
}
UNSIGNED = {"maxui", "minui", "divui", "remui", "ceildivui", "shrui"}
DIVISIONS = {"divsi", "remsi", "divui", "remui", "ceildivsi", "ceildivui", "floordivsi"}
SHIFTS = {"shli", "shrsi", "shrui"}


def operands(op: str, kind: str) -> list[Any]:
    """Pairs with the corners; no division by zero or overflow, no shift past the width: those are undefined."""
    width, random = _width(kind), np.random.default_rng(7)
    if width == 1:
        x, y = [0, 0, 1, 1] * 2, [0, 1, 0, 1] * 2
    else:
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        corners = [low, low + 1, -7, -1, 0, 1, 2, 7, high]
        x = [a for a in corners for _ in corners] + random.integers(low, high, 79, np.int64, endpoint=True).tolist()
        y = corners * len(corners) + random.integers(low, high, 79, np.int64, endpoint=True).tolist()
    if op in SHIFTS:
        y = [unsigned(value, width) % width for value in y]
    if op in DIVISIONS:
        x = [-3 if (a, b) == (-(1 << (width - 1)), -1) else a for a, b in zip(x, y, strict=False)]
        y = [b or (1 if width == 1 else 3) for b in y]
        if width == 1 and op not in UNSIGNED:
            x = [0] * len(x)  # -1 / -1 overflows
    return [np.array(part, DTYPES[kind]) for part in (x, y)]


def _forms(body: str, inputs: list[str], outputs: list[str], **types: str) -> list[Form]:
    return [Form(name, inputs, outputs, body, shape, types) for name, shape in SHAPES]


def _binary(op: str, kind: str) -> Case:
    forms = _forms(f"%r0 = arith.{op} %x0, %x1 : {{T}}", [kind, kind], [kind])
    width, view = _width(kind), unsigned if op in UNSIGNED else signed

    def run(library: Library) -> None:
        x, y = operands(op, kind)
        shift = op in SHIFTS
        results = [
            BINARY[op](view(int(a), width), int(b) if shift else view(int(b), width))
            for a, b in zip(x, y, strict=False)
        ]
        for form in forms:
            same(form.run(library, x, y)[0], np.array([wrap(r, width) for r in results], DTYPES[kind]))

    return Case(f"arith.{op}", kind, module(forms), run)


def _extended(op: str, kind: str) -> Case:
    second = "i1" if op == "addui_extended" else kind
    types = "{T}, {C}" if op == "addui_extended" else "{T}"
    forms = _forms(f"%r0, %r1 = arith.{op} %x0, %x1 : {types}", [kind, kind], [kind, second], C=second)
    width = _width(kind)
    view = signed if op == "mulsi_extended" else unsigned

    def run(library: Library) -> None:
        x, y = operands(op, kind)
        pairs = [(view(int(a), width), view(int(b), width)) for a, b in zip(x, y, strict=False)]
        whole = [a + b if op == "addui_extended" else a * b for a, b in pairs]
        for form in forms:
            low, high = form.run(library, x, y)
            same(low, np.array([wrap(value, width) for value in whole], DTYPES[kind]))
            same(
                high,
                np.array([wrap(value >> width, 1 if second == "i1" else width) for value in whole], DTYPES[second]),
            )

    return Case(f"arith.{op}", kind, module(forms), run)


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "slt": lambda x, y: x < y, "sle": lambda x, y: x <= y,
    "sgt": lambda x, y: x > y, "sge": lambda x, y: x >= y, "ult": lambda x, y: x < y, "ule": lambda x, y: x <= y,
    "ugt": lambda x, y: x > y, "uge": lambda x, y: x >= y,
}  # fmt: skip


def _cmpi(kind: str) -> Case:
    forms = [
        Form(f"{predicate}_{name}", [kind, kind], ["i1"], f"%r0 = arith.cmpi {predicate}, %x0, %x1 : {{T}}", shape)
        for predicate in COMPARISONS
        for name, shape in SHAPES[:2]
    ]
    width = _width(kind)

    def run(library: Library) -> None:
        x, y = operands("cmpi", kind)
        for form in forms:
            predicate = form.name.split("_")[0]
            view = unsigned if predicate.startswith("u") else signed
            expected = [
                COMPARISONS[predicate](view(int(a), width), view(int(b), width)) for a, b in zip(x, y, strict=False)
            ]
            same(form.run(library, x, y)[0], np.array(expected))

    return Case("arith.cmpi", kind, module(forms), run)


def _cast(op: str, source: str, target: str) -> Case:
    forms = _forms(f"%r0 = arith.{op} %x0 : {{T}} to {{R}}", [source], [target])
    width, after = _width(source), _width(target)
    view = unsigned if op in ("extui", "index_castui") else signed

    def run(library: Library) -> None:
        x, _ = operands(op, source)
        expected = np.array([wrap(view(int(value), width), after) for value in x], DTYPES[target])
        for form in forms:
            same(form.run(library, x)[0], expected)

    return Case(f"arith.{op}", f"{source} to {target}", module(forms), run)


def _select(kind: str) -> Case:
    forms = [
        Form("scalar", [kind, kind, "i1"], [kind], "%r0 = arith.select %x2, %x0, %x1 : {T}"),
        Form("vector", [kind, kind, "i1"], [kind], "%r0 = arith.select %x2, %x0, %x1 : {C}, {T}", (4,), {"C": "i1"}),
        Form("matrix", [kind, kind, "i1"], [kind], "%r0 = arith.select %x2, %x0, %x1 : {C}, {T}", (2, 2), {"C": "i1"}),
    ]

    def run(library: Library) -> None:
        x, y = operands("select", kind)
        choice = np.arange(len(x)) % 3 == 0
        for form in forms:
            same(form.run(library, x, y, choice)[0], np.where(choice, x, y))

    return Case("arith.select", kind, module(forms), run)


def _narrow_integer() -> Case:
    """i4 exists in registers; there is no memory of it."""
    body = """%a = arith.trunci %x0 : {T} to {N}
      %b = arith.trunci %x1 : {T} to {N}
      %s = arith.addi %a, %b : {N}
      %r0 = arith.extsi %s : {N} to {T}"""
    forms = _forms(body, ["i8", "i8"], ["i8"], N="i4")

    def run(library: Library) -> None:
        x, y = operands("addi", "i8")
        expected = np.array([wrap(int(a) + int(b), 4) for a, b in zip(x, y, strict=False)], np.int8)
        for form in forms:
            same(form.run(library, x, y)[0], expected)

    return Case("arith.addi", "i4 in registers", module(forms), run)


CASTS = [
    *(("extsi", a, b) for a, b in (("i1", "i8"), ("i1", "i64"), ("i8", "i16"), ("i8", "i64"), ("i16", "i32"), ("i32", "i64"))),
    *(("extui", a, b) for a, b in (("i1", "i8"), ("i1", "i64"), ("i8", "i16"), ("i8", "i64"), ("i16", "i32"), ("i32", "i64"))),
    *(("trunci", a, b) for a, b in (("i64", "i32"), ("i64", "i1"), ("i32", "i16"), ("i32", "i8"), ("i16", "i8"), ("i8", "i1"))),
    *((op, a, b) for op in ("index_cast", "index_castui")
      for a, b in (("i8", "index"), ("i32", "index"), ("i64", "index"), ("index", "i8"), ("index", "i32"), ("index", "i64"))),
]  # fmt: skip

CASES = [
    *(_binary(op, kind) for op in BINARY for kind in TYPES),
    *(_extended(op, kind) for op in ("addui_extended", "mulsi_extended", "mului_extended") for kind in TYPES),
    *(_cmpi(kind) for kind in TYPES),
    *(_cast(*names) for names in CASTS),
    *(_select(kind) for kind in TYPES),
    _narrow_integer(),
]
