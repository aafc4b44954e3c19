"""Functions on tensors that call each other, branch between blocks and keep tensors in parallel loops, for the CPU and
on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, on_host
from emulator.driver import shared
from test_tensors import check

import offload
from offload import CompileError

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


CARRIED = """
func.func @f(%x: tensor<4x16xf32>, %n: index) -> tensor<4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x16xf32>
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<4x16xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 16][1, 1] : tensor<4x16xf32> to tensor<16xf32>
    %p = scf.for %k = %c0 to %n step %c1 iter_args(%a = %s) -> tensor<16xf32> {
      %q = tensor.generate {
      ^bb0(%j: index):
        %j1 = arith.xori %j, %c1 : index
        %v = tensor.extract %a[%j1] : tensor<16xf32>
        tensor.yield %v : f32
      } : tensor<16xf32>
      scf.yield %q : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0][1, 16][1, 1] : tensor<16xf32> into tensor<4x16xf32>
    }
  }
  return %r : tensor<4x16xf32>
}
"""


def test_what_a_loop_of_a_thread_hands_on_is_not_private() -> None:
    """The next iteration would write what it reads."""
    with pytest.raises(CompileError, match="threads have no allocator"):
        emit(CARRIED, "so")
