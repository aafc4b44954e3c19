"""Atomic operations of all threads of a grid on one place. All values are such that their order is open."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance import Answer, Launch, Theme
from conformance.lanes import DTYPES

THEME = Theme("atomics")
KINDS: dict[str, Any] = {
    "addi": np.add, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor, "maxs": np.maximum,
    "maxu": np.maximum, "mins": np.minimum, "minu": np.minimum, "muli": np.multiply, "addf": np.add,
    "mulf": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
}  # fmt: skip
FORMS = (
    "addi i8", "addi i16", "addi i32", "addi i64", "andi i32", "ori i64", "xori i32", "maxs i32", "maxu i8", "mins i64",
    "minu i16", "muli i32", "addf f32", "addf f64", "addf f16", "mulf f32", "maximumf f32", "minimumf f64",
    "maxnumf f32", "minnumf f16",
)  # fmt: skip


@THEME.kernel(*FORMS)
def _(launch: Launch, kind: str, element: str) -> Answer:
    dtype = DTYPES[element]
    if element.startswith("i"):
        x = launch.any_of(dtype) | dtype(1)
    elif kind == "mulf":
        x = launch.random.choice(np.array([-1, 1], dtype), launch.total)
    else:
        x = launch.integers(-1, 2, dtype) if kind == "addf" else launch.integers(-500, 500, dtype)
    start = np.ones(1, dtype)
    all_values = np.concatenate([start, x])
    unsigned = all_values.view(f"u{all_values.itemsize}") if kind in ("maxu", "minu") else all_values
    expected = np.array([KINDS[kind].reduce(unsigned, dtype=unsigned.dtype)]).view(dtype)
    return Answer([x, start], [x, expected])


@THEME.kernel()
def tickets(launch: Launch) -> Answer:
    def each_once(found: Any) -> None:
        np.testing.assert_array_equal(np.sort(found), np.arange(launch.total))

    counter = np.array([launch.total], np.int32)
    return Answer([np.zeros(1, np.int32), np.zeros(launch.total, np.int32)], [counter, each_once])


@THEME.kernel()
def assigned(launch: Launch) -> Answer:
    x = launch.any_of(np.int64)

    def one_of_them(found: Any) -> None:
        assert found[0] in x

    return Answer([x, np.zeros(1, np.int64)], [x, one_of_them])


@THEME.kernel()
def own_step(launch: Launch) -> Answer:
    x = launch.integers(0, 1000)
    return Answer([x, np.zeros(1, np.int32)], [x, np.array([x.sum() % 1000], np.int32)])


@THEME.kernel()
def own_float_step(launch: Launch) -> Answer:
    x = launch.integers(-10, 10, np.float32)
    return Answer([x, np.zeros(1, np.float32)], [x, np.array([2 * x.sum()], np.float32)])


@THEME.kernel("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
def exchange(launch: Launch, kind: str) -> Answer:
    x, y = (launch.integers(-100, 100).astype(DTYPES[kind]) for _ in range(2))
    return Answer([x, y, np.zeros_like(x)], [np.zeros_like(x), x, y])


@THEME.kernel()
def compare_and_exchange(launch: Launch) -> Answer:
    x = launch.integers(-1 << 30, 1 << 30)
    start = np.array([-(1 << 31)], np.int32)
    return Answer([x, start], [x, np.array([x.max()])])


@THEME.kernel()
def histogram(launch: Launch) -> Answer:
    x = launch.integers(0, 7)
    return Answer([x, np.zeros(7, np.int32)], [x, np.bincount(x, minlength=7).astype(np.int32)])
