"""Functions of integers: counts of bits, absolute values, powers; scalars, vectors of rank 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numeric import DTYPES, Form, module, same

from offload.runtime import Library
from operations import Case

TYPES = ("i8", "i16", "i32", "i64", "index")


def _forms(body: str, inputs: list[str]) -> list[Form]:
    shapes: list[tuple[str, tuple[int, ...]]] = [("scalar", ()), ("vector", (4,)), ("matrix", (2, 2))]
    return [Form(name, inputs, inputs[:1], body, shape) for name, shape in shapes]


def _bits(value: int, width: int) -> str:
    return f"{value & (1 << width) - 1:0{width}b}"


def _wrapped(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


UNARY: dict[str, Callable[[int, int], int]] = {
    "absi": lambda x, width: _wrapped(abs(x), width),
    "ctlz": lambda x, width: width - len(_bits(x, width).lstrip("0")),
    "cttz": lambda x, width: width - len(_bits(x, width).rstrip("0")),
    "ctpop": lambda x, width: _bits(x, width).count("1"),
}


def _unary(op: str, kind: str) -> Case:
    forms = _forms(f"%r0 = math.{op} %x0 : {{T}}", [kind])
    dtype = DTYPES[kind]

    def run(library: Library) -> None:
        info = np.iinfo(dtype)
        random = np.random.default_rng(1).integers(info.min, info.max, 94, dtype, endpoint=True)
        x = np.concatenate([random, np.array([0, 1, -1, info.min, info.max, 64], dtype)])
        expected = np.array([UNARY[op](int(value), info.bits) for value in x], dtype)
        for form in forms:
            same(form.run(library, x)[0], expected)

    return Case(f"math.{op}", kind, module(forms), run)


def _power(base: int, exponent: int, width: int) -> int:
    if exponent >= 0:
        return _wrapped(pow(base, exponent, 1 << width), width)
    return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)


def _ipowi(kind: str) -> Case:
    forms = _forms("%r0 = math.ipowi %x0, %x1 : {T}", [kind, kind])
    dtype: Any = DTYPES[kind]

    def run(library: Library) -> None:
        info = np.iinfo(dtype)
        values = [1, -1, 2, -2, 3, 7, -11, info.max, info.min]
        powers = [0, 1, 2, 3, 5, 11, 100, info.max, -1, -2, info.min, info.min + 1]
        base, power = (part.ravel() for part in np.meshgrid(np.array(values, dtype), np.array(powers, dtype)))
        base, power = np.append(base, np.zeros(4, dtype)), np.append(power, np.array([0, 1, 2, 9], dtype))
        expected = np.array([_power(int(x), int(y), info.bits) for x, y in zip(base, power, strict=False)], dtype)
        for form in forms:
            same(form.run(library, base, power)[0], expected)

    return Case("math.ipowi", kind, module(forms), run)


CASES = [*(_unary(op, kind) for op in UNARY for kind in TYPES), *(_ipowi(kind) for kind in TYPES)]
