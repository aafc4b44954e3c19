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


def turned(a: Any, i: int, n: int) -> Any:
    a, b = steps(n, (a, a[:, 0]), lambda pair: (pair[0].T, np.full(len(pair[0]), i, np.float32)))
    return b.sum() + a[0, 0]


@pytest.mark.parametrize("target", ["host", "sm_90", "gfx942"])
@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 1, 3000), (0, 1, 1)])
def test_rows_and_columns(target: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 64
    with running_on(target, PROGRAM) as library:
        for n in range(4):
            expected = [turned(a, i, n) for i, a in enumerate(x)]
            np.testing.assert_allclose(library.turned(x, n).numpy(), expected, rtol=1e-4)


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


def exchanged(count: int) -> str:
    """A loop that carries rows, the first shorter than the others, and brings them into the order of their first
    elements."""
    rows = [f"%a{i}" for i in range(count)]
    lines = [f"%v{i} = tensor.extract %a{i}[%c0] : tensor<?xf32>" for i in range(count)]
    for turn in range(2):
        for i in range(count - 1):
            at, (one, other) = f"{turn}_{i}", rows[i : i + 2]
            lines += [
                f"%c{at} = arith.cmpf olt, %v{i}, %v{i + 1} : f32",
                f"%s{at} = arith.select %c{at}, {one}, {other} : tensor<?xf32>",
                f"%t{at} = arith.select %c{at}, {other}, {one} : tensor<?xf32>",
            ]
            rows[i : i + 2] = [f"%s{at}", f"%t{at}"]
    types = ", ".join(["tensor<?xf32>"] * count)
    begins = ", ".join(f"%a{i} = {'%row' if i else '%short'}" for i in range(count))
    steps = "\n".join(lines)
    return f"""
func.func @exchanged(%x: tensor<?x?xf32>, %p: index, %n: index) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %w = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %r = scf.forall (%i) in (%m) shared_outs(%o = %e) -> tensor<?xf32> {{
    %row = tensor.extract_slice %x[%i, 0] [1, %w] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %short = tensor.extract_slice %x[0, 0] [1, %p] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %rs:{count} = scf.for %k = %c0 to %n step %c1 iter_args({begins}) -> ({types}) {{
      {steps}
      scf.yield {", ".join(rows)} : {types}
    }}
    %v = tensor.extract %rs#0[%c0] : tensor<?xf32>
    %one = tensor.from_elements %v : tensor<1xf32>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %one into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }}
  }}
  return %r : tensor<?xf32>
}}
"""


def test_chains_of_choices_take_no_time_that_doubles() -> None:
    with running_on("host", exchanged(6)) as library:  # of three, it took half a minute
        x = np.array([[3, 1], [2, 1], [4, 1]], np.float32)
        np.testing.assert_array_equal(library.exchanged(x, 1, 1).numpy(), [3, 2, 3])
