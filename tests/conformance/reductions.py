"""Reductions over a warp, over parts of one, and over a block. All values are such that their order is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance import Answer, Launch, Theme
from conformance.lanes import DTYPES

THEME = Theme("reductions")
OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum,
    "maxui": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "minnumf": np.fmin, "maxnumf": np.fmax, "minimumf": np.minimum, "maximumf": np.maximum,
}  # fmt: skip
FORMS = (
    "add i8", "add i16", "add i32", "add i64", "add f16", "add f32", "add f64", "mul i32", "mul f32", "minsi i32",
    "maxsi i16", "minui i32", "maxui i64", "and i32", "or i64", "xor i8", "minnumf f32", "maxnumf f64", "minimumf f32",
    "maximumf f16",
)  # fmt: skip


def values(launch: Launch, op: str, kind: str) -> Any:
    if kind.startswith("i"):
        return launch.any_of(DTYPES[kind])
    if op == "mul":
        return launch.random.choice(np.array([-1, 1, 2, 0.5], DTYPES[kind]), launch.total)
    return launch.integers(-1, 2, DTYPES[kind]) if op == "add" else launch.integers(-500, 500, DTYPES[kind])


def reducer(op: str, dtype: Any) -> Callable[[Any], Any]:
    def reduce(part: Any) -> Any:
        unsigned = part.view(f"u{part.dtype.itemsize}") if op.endswith("ui") else part
        with np.errstate(over="ignore", under="ignore"):
            return OPS[op].reduce(unsigned, dtype=unsigned.dtype).astype(dtype)

    return reduce


@THEME.kernel(*FORMS)
def warp(launch: Launch, op: str, kind: str) -> Answer:
    x = values(launch, op, kind)
    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(reducer(op, x.dtype), x)])


@THEME.kernel(*FORMS, blocks=[(1, 1, 1), (7, 1, 1), (33, 1, 1), (64, 1, 1), (4, 3, 5), (97, 2, 1)])
def block(launch: Launch, op: str, kind: str) -> Answer:
    x = values(launch, op, kind)
    return Answer([x, np.zeros_like(x)], [x, launch.by_block(reducer(op, x.dtype), x)])


@THEME.kernel("4 1", "8 2", "1 1", "2 16")
def cluster(launch: Launch, size: str, stride: str) -> Answer:
    """Lanes ``stride`` apart, ``size`` of them, from the first one of each such group on."""
    x = launch.integers(-1000, 1000)
    count, apart = int(size), int(stride)

    def of_warp(part: Any) -> Any:
        lane = np.arange(len(part))
        group = lane // (count * apart) * apart + lane % apart
        return np.array([part[group == mine].sum() for mine in group], part.dtype)

    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(of_warp, x)])


@THEME.kernel()
def vectors(launch: Launch) -> Answer:
    x = launch.integers(-100, 100, np.float32, (launch.total, 4))
    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(lambda part: part.sum(axis=0), x)])


@THEME.kernel()
def own_operation(launch: Launch) -> Answer:
    x = launch.integers(-100000, 100000)

    def furthest(part: Any) -> Any:
        return max(part.tolist(), key=lambda value: (abs(value), value))

    return Answer([x, np.zeros_like(x)], [x, launch.by_block(furthest, x).astype(np.int32)])


@THEME.kernel()
def those_that_are_there(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def of_warp(part: Any) -> Any:
        return np.where(part > 0, part[part > 0].sum(), part[part <= 0].min(initial=1 << 30)).astype(part.dtype)

    return Answer([x, np.zeros_like(x)], [x, launch.by_warp(of_warp, x)])


@THEME.kernel()
def one_after_the_other(launch: Launch) -> Answer:
    x = launch.integers(-1000, 1000)

    def of_block(part: Any) -> Any:
        from_least = part - part.min()
        return (from_least + from_least.sum(dtype=np.int32)).max()

    return Answer([x, np.zeros_like(x)], [x, launch.by_block(of_block, x)])


@THEME.kernel()
def in_a_loop(launch: Launch) -> Answer:
    x, times = launch.any_of(np.int32), int(launch.random.integers(0, 5))

    def of_block(part: Any) -> Any:
        for _ in range(times):
            part = part ^ part.sum(dtype=np.int32)
        return part

    return Answer([x, times, np.zeros_like(x)], [x, launch.by_block(of_block, x)])
