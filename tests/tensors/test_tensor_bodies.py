"""Functions on tensors that call each other, branch between blocks and keep tensors in parallel loops, for the CPU and
on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.driver import shared
from test_tensors import check

import offload

PROGRAM = PROGRAMS / "tensor_bodies.mlir"

_random = np.random.default_rng(31)
X, Y = _random.uniform(-2, 2, (2, 9)).astype(np.float32)
ROWS = _random.uniform(-2, 2, (6, 32)).astype(np.float32)
LONG = _random.uniform(-2, 2, 21).astype(np.float32)
E = np.exp(ROWS - ROWS.max(1, keepdims=True))

CASES: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("chained", (X,), (4 * X,)),
    ("branch", (X, Y, True), (np.exp(X),)),
    ("branch", (X, Y, False), (Y,)),
    ("until", (X, 4, 9), (5 * X,)),
    ("until", (X, 4, 2), (-3 * X,)),
    ("until", (X, 0, 2), (X,)),
    ("shares", (ROWS,), (E / E.sum(1, keepdims=True),)),
    ("numbers", (X,), (X * X, np.arange(9))),
    ("tiles", (LONG,), (np.exp(np.concatenate([LONG[:8][::-1], LONG[8:16][::-1], LONG[16:][::-1]])),)),
    ("tiles", (LONG[:8].copy(),), (np.exp(LONG[:8][::-1]),)),
    ("bits", (X,), (X.view(np.int32),)),
    ("single", (ROWS[:1, :4].copy(), True), (np.full((1, 4), 49),)),
    ("single", (ROWS[:1, :4].copy(), False), (ROWS[:1, :4] ** 2,)),
    ("grown", (ROWS, 6, 32), (ROWS**2 + ROWS,)),
    ("zeroed", (np.arange(3, dtype=np.int32),), (np.int32(0),)),
    ("zeroed", (np.zeros(0, np.int32),), (np.int32(7),)),
    ("zeroed_argument", (np.arange(3, dtype=np.int32), np.array(9, np.int32)), (np.int32(0),)),
    ("zeroed_argument", (np.zeros(0, np.int32), np.array(9, np.int32)), (np.int32(9),)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_on_the_cpu(case: tuple[str, tuple[Any, ...], tuple[Any, ...]]) -> None:
    name, arguments, expected = case
    check(getattr(on_host(PROGRAM), name), arguments, expected)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_on_devices(chip: str) -> None:
    library = offload.compile(PROGRAM, targets=[f"rocdl:{chip}"])
    library.auto_stage = True
    with shared().chip(chip):
        library.use("hip")
        for name, arguments, expected in CASES:
            check(getattr(library, name), arguments, expected)
        out = np.zeros(9, np.float32)
        library.from_memory(X, out)
        np.testing.assert_array_equal(out, 8 * X)
    shared().check()


def test_functions_on_tensors_take_what_others_made_and_what_a_caller_gave() -> None:
    x, out = X.copy(), np.zeros(9, np.float32)
    on_host(PROGRAM).from_memory(x, out)
    np.testing.assert_array_equal(out, 8 * X)
    np.testing.assert_array_equal(x, X)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)
