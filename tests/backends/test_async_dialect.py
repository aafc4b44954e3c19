"""The async dialect in host code."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit, emit_text, on_host, program

import offload


@pytest.mark.parametrize("n", [1, 33])
def test_tokens_of_streams_as_async_values(n: int) -> None:
    x, y = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
    program("async_dialect").chain(x, y)
    np.testing.assert_array_equal(y, x + 3)


def test_an_async_function() -> None:
    assert program("async_dialect").called(np.array([5, 6], np.int32), 7) == 12


def test_a_chosen_value() -> None:
    assert [program("async_dialect").chosen(which, 5) for which in (True, False)] == [10, 25]


@pytest.mark.parametrize("n", [0, 1, 9])
def test_groups(n: int) -> None:
    x = np.full(n, -1, np.int32)
    assert program("async_dialect").group(n, x) == sum(range(n))
    np.testing.assert_array_equal(x, np.arange(n))


def test_nothing_of_the_dialect_is_left_and_streams_still_meet() -> None:
    assert "async." not in emit_text(PROGRAMS / "async_dialect.mlir", "kernels").replace("gpu.async", "")
    assert len(emit(PROGRAMS / "async_dialect.mlir", "object", ALL_TARGETS)) == 3


TENSORS = """
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<?xf32> {
    %done, %v = async.execute -> !async.value<tensor<?xf32>> {
      %e = arith.addf %y, %y : tensor<?xf32>
      async.yield %e : tensor<?xf32>
    }
    %last, %w = async.execute [%done] (%v as %u: !async.value<tensor<?xf32>>) -> !async.value<tensor<?xf32>> {
      %e = arith.negf %u : tensor<?xf32>
      async.yield %e : tensor<?xf32>
    }
    %z = async.await %w : !async.value<tensor<?xf32>>
    scf.yield %z : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
"""


@pytest.mark.parametrize("n", [0, 1, 3])
def test_tensors_as_async_values(n: int) -> None:
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(on_host(TENSORS).f(x, n).numpy(), x * (-2.0) ** n)


def test_its_run_time_half_is_refused() -> None:
    text = "func.func @f() {\n  %t = async.runtime.create : !async.token\n  return\n}\n"
    with pytest.raises(offload.CompileError, match=r"<string>:2:8: error: .*before async-to-async-runtime"):
        offload.compile(text, targets=["host"])


def test_nothing_asks_for_errors() -> None:
    text = """func.func @f() -> i1 {
  %t = async.execute { async.yield }
  %e = async.runtime.is_error %t : !async.token
  return %e : i1
}"""
    with pytest.raises(offload.CompileError, match=r"<string>:3:8: error: .*ends the call; leave it out"):
        offload.compile(text, targets=["host"])


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_kernels_have_no_tasks(target: str) -> None:
    text = """gpu.module @m {
  gpu.func @k() kernel {
    %t = async.execute { async.yield }
    async.await %t : !async.token
    gpu.return
  }
}"""
    with pytest.raises(
        offload.CompileError, match=r"<string>:3:10: error: .*write what async.execute holds in its place"
    ):
        offload.compile(text, targets=[target])


def test_the_words_of_an_async_function_are_its_own() -> None:
    source = (
        'async.func @f(%x: i64) -> !async.value<i64> attributes {offload.doc = "Adds nothing."} {\n return %x : i64\n}'
    )
    library = on_host(source)
    assert library.f(3) == 3
    assert "Adds nothing." in (library.f.__doc__ or "")
