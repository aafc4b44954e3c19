"""Rows of a length that only the call knows, which loops of threads hand on: by branches, in turn, of two lengths."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS
from emulator.running import running_on

PROGRAM = PROGRAMS / "carried_rows.mlir"


def until(begin: Any, step: Callable[[Any], Any]) -> Any:
    while begin[0] < 9:
        begin = step(begin)
    return begin


def steps(count: int, begin: Any, step: Callable[[Any], Any]) -> Any:
    for _ in range(count):
        begin = step(begin)
    return begin


def grown(a: Any) -> Any:
    return a + a if a[0] < 4 else a * a


def added(a: Any, y: Any) -> Any:
    return np.where(a[:, :1] < 2, a + y, y)


def begun_again(a: Any, row: Any) -> Any:
    b = a
    for _ in range(2):
        b = b + row if b[0] < 9 else a
    return b


def of_row(row: Any, n: int) -> dict[str, Any]:
    """What each function that takes rows and a number makes of a row."""
    return {
        "branched": steps(n, row, lambda a: a + a if a[0] < 9 else row),
        "begun_again": steps(n, row, lambda a: begun_again(a, row)),
        "in_turn": steps(n, (row, row), lambda p: (p[1], p[0] + p[1]))[1],
        "doubled": until(row + row, lambda a: a + a),
        "grown": until(grown(row), grown),
        "inner": steps(n, row, lambda a: until(a, lambda b: b + b) - row),
    }


def halves(row: Any, p: int, n: int) -> Any:
    a = row[:p]
    for k in range(n):
        a = row if k % 3 == 1 else a + a
    return np.concatenate([a, row[len(a) :]])


def windows(row: Any, p: int, q: int, n: int) -> Any:
    a, b = steps(n, (row[:p], row[p : p + q]), lambda pair: (pair[1], pair[0] + pair[0]))
    return a.sum() + 100000 * len(b)


@pytest.mark.parametrize("target", ["host", "host,O=0", "sm_90", "gfx942"])
def test_rows(target: str) -> None:
    random = np.random.default_rng(3)
    with running_on(target, PROGRAM) as library:
        for shape in ((5, 8), (1, 1), (0, 4), (3, 21)):
            x = (random.random(shape) * 3 + 0.5).astype(np.float32)
            y = x[0] if len(x) else x.reshape(-1)[:0].repeat(0)
            numbers = (x * 9).astype(np.int32)
            half = shape[1] // 2
            for n in (0, 1, 4):
                for name in of_row(np.ones(1), 0):
                    found = getattr(library, name)(x, n).numpy()
                    expected = np.array([of_row(row, n)[name] for row in x]).reshape(shape)
                    np.testing.assert_allclose(found, expected, rtol=1e-4, err_msg=name)
                expected = np.array([halves(row, half, n) for row in x]).reshape(shape)
                np.testing.assert_allclose(library.halves(x, half, n).numpy(), expected, rtol=1e-4)
                sums = [windows(row, half, shape[1] - half, n) for row in numbers]
                np.testing.assert_array_equal(library.windows(numbers, half, shape[1] - half, n).numpy(), sums)
                if len(x):
                    given = steps(n, x, functools.partial(added, y=y))
                    np.testing.assert_allclose(library.given(x, y, n).numpy(), given, rtol=1e-4)
