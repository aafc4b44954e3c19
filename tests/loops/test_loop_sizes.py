"""Sizes that steps of threads' loops ask for are compared in front of the loops, where they can be told there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host, program
from emulator.running import running_on

import offload

NAME = "loop_sizes"
SAME = "linalg.add: dimension 0 of operand 2 of 3 and dimension 0 of operand 1 of 3 have to be the same: {} and {}."
PART = "{}: the size has to be at most what is left of dimension {}: {} and {}."


def f(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 16


def fails(function: str, words: str, *arguments: Any) -> None:
    with pytest.raises(offload.DeviceError, match=rf"{NAME}\.mlir:\d+: {re.escape(words)}$"):
        getattr(program(NAME), function)(*arguments)


def test_rows_and_a_shorter_argument() -> None:
    rows = program(NAME).rows
    np.testing.assert_array_equal(rows(f(3, 4), f(4)).numpy(), f(3, 4) + f(4))
    fails("rows", SAME.format(3, 4), f(3, 4), f(3))
    fails("rows", SAME.format(0, 4), f(3, 4), f(0))
    assert rows(f(0, 4), f(3)).numpy().shape == (0, 4)  # nothing is added


@pytest.mark.parametrize("count", [0, 1, 2])
def test_parts_that_fit(count: int) -> None:
    np.testing.assert_allclose(program(NAME).parts(f(9), count).numpy(), np.exp(f(4 * count)), rtol=1e-6)


def test_parts_of_the_last_step() -> None:
    fails("parts", PART.format("tensor.extract_slice", 0, 4, 1), f(9), 3)
    fails("insertions", PART.format("tensor.extract_slice", 0, 4, 0), f(8), f(12), 9)
    fails("insertions", PART.format("tensor.parallel_insert_slice", 0, 4, 0), f(12), f(8), 9)
    for end in (5, 8):
        np.testing.assert_array_equal(program(NAME).insertions(f(8), f(12), end).numpy(), f(12))


def test_parts_of_the_first_step() -> None:
    fails("turned", PART.format("tensor.extract_slice", 0, 1, 0), f(3), f(4))
    np.testing.assert_array_equal(program(NAME).turned(f(5), f(4)).numpy(), f(4)[::-1])


def test_loops_in_loops() -> None:
    y = f(4, 6)
    program(NAME).views(f(4, 6), y, 4)
    np.testing.assert_allclose(y, np.where(np.arange(4)[:, None] % 2 == 0, np.exp(f(4, 6)), f(4, 6)), rtol=1e-6)
    fails("views", PART.format("memref.subview", 1, 3, 2), f(4, 6), f(4, 5), 4)
    fails("views", PART.format("memref.subview", 0, 1, 0), f(4, 9), f(4, 9), 5)
    program(NAME).views(f(4, 6), f(4, 5), 0)


@pytest.mark.parametrize("branch", [False, True])
def test_what_loops_and_branches_hand_on(branch: bool) -> None:
    fails("carried", SAME.format(3, 4), f(2, 4), f(3), 2, branch)
    expected = np.exp(f(2, 4)) if branch else f(2, 4)
    np.testing.assert_allclose(program(NAME).carried(f(2, 4), f(4), 2, branch).numpy(), expected + f(4), rtol=1e-6)


def test_a_division_that_only_steps_make() -> None:
    divided = program(NAME).divided
    assert divided(f(0), f(3), 0).numpy().shape == (0,)
    np.testing.assert_array_equal(divided(f(4), f(3), 2).numpy(), np.full(4, f(3)[2]))
    fails("divided", PART.format("tensor.extract_slice", 0, 1, 0), f(4), f(2), 2)


@pytest.mark.parametrize("target", ["host", "sm_90"])
def test_loops_of_no_steps(target: str) -> None:
    with running_on(target, PROGRAMS / f"{NAME}.mlir") as library:
        assert library.digits(f(3, 0), 3, 0).numpy().shape == (0,)
        np.testing.assert_array_equal(library.digits(f(3, 2), 3, 2).numpy(), f(6))
        for places in ([], [2, 0, 2]):
            found = library.gathered(f(3, 4), np.array(places, np.int64)).numpy()
            np.testing.assert_array_equal(found, f(3, 4)[np.array(places, np.int64)])


def test_steps_that_do_not_come_there_ask_for_nothing() -> None:
    np.testing.assert_array_equal(program(NAME).guarded(f(3), f(5), 5).numpy(), [*f(3), 7, 7])


def test_elements_that_are_generated() -> None:
    np.testing.assert_array_equal(program(NAME).generated(f(3, 2), 3).numpy(), f(3, 2)[:, 1])
    fails("generated", PART.format("tensor.extract_slice", 1, 2, 1), f(3, 1), 3)
    fails("generated", PART.format("tensor.extract_slice", 0, 1, 0), f(3, 2), 4)
    assert program(NAME).generated(f(3, 1), 0).numpy().shape == (0,)


def test_many_indices() -> None:
    x = f(2, 2, 2, 5)
    program(NAME).four(x, 2)
    i, j, k, at = np.indices(x.shape)
    reached = (at >= i + j + k) & (at < i + j + k + 2)
    np.testing.assert_allclose(x, np.where(reached, np.exp(f(*x.shape)), f(*x.shape)), rtol=1e-6)
    fails("four", PART.format("memref.subview", 3, 1, 0), f(2, 2, 2, 4), 2)


NEVER = """
func.func @never(%a: tensor<15xf32>, %e: tensor<16xf32>) -> tensor<16xf32> {
  %r = scf.forall (%i) in (4) shared_outs(%o = %e) -> tensor<16xf32> {
    %at = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %row = tensor.extract_slice %a[%at] [4] [1] : tensor<15xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%at] [4] [1] : tensor<4xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}
"""


def test_what_can_never_be_right_is_an_error_of_the_build() -> None:
    with pytest.raises(offload.CompileError, match="what is left of dimension 0: 4 and 3") as caught:
        offload.compile(NEVER, targets=["host"])
    assert caught.value.diagnostics[0].line == 5


def test_what_never_runs_is_none() -> None:
    on_host(NEVER.replace("in (4)", "in (0)"))


def test_kernels_assert_what_only_they_know() -> None:
    kernels = emit_text(PROGRAMS / f"{NAME}.mlir", "kernels").split("gpu.func @")[1:]
    asserting = {part.split("(")[0] for part in kernels if "cf.assert" in part.split("gpu.return", 1)[0]}
    assert asserting == {"guarded_kernel", "gathered_kernel"}


@pytest.mark.parametrize("function", ["tiles", "affine_tiles"])
def test_what_is_always_within_is_not_compared(function: str) -> None:
    kernels = emit_text(PROGRAMS / f"{NAME}.mlir", "kernels")
    assert "cf.assert" not in kernels.split(f"func.func @{function}(", 1)[1].split("func.func", 1)[0]
    for size in (0, 1, 32, 33):
        np.testing.assert_allclose(getattr(program(NAME), function)(f(size)).numpy(), np.exp(f(size)), rtol=1e-6)


SCHEDULED = """
module attributes {transform.with_named_sequence} {
  func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
    %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op) {
    %add = transform.structured.match ops{["linalg.add"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_forall %add tile_sizes [8]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""


def test_what_a_schedule_has_tiled_asks_for_nothing() -> None:
    assert "cf.assert" not in emit_text(SCHEDULED, "kernels")
    np.testing.assert_array_equal(on_host(SCHEDULED).twice(f(13)).numpy(), 2 * f(13))
