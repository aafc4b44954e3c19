"""Operations without a token, and frees, come behind work with tokens that uses their memory, wherever that stands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from compiling import PROGRAMS, emit, on_host, program

from offload.runtime.library import Library


def running_late(name: str, seed: int) -> Iterator[Library]:
    """Its streams run their work late, in an order drawn by chance."""
    made = program(name)
    made._native.api.mgpuHostSchedule(seed)
    yield made
    made._native.api.mgpuHostSchedule(0)


@pytest.fixture(params=range(6))
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    yield from running_late("unordered", request.param)


@pytest.fixture(params=range(6))
def names(request: pytest.FixtureRequest) -> Iterator[Library]:
    yield from running_late("unordered_names", request.param)


def test_frees_after_a_loop(library: Library) -> None:
    for function in (library.freed_after_a_loop, library.on_the_stack):
        out = np.zeros(64, np.float32)
        function(out)
        np.testing.assert_array_equal(out, np.full(64, 3))


@pytest.mark.parametrize("launched", [False, True])
def test_a_copy_after_a_branch(library: Library, launched: bool) -> None:
    x, out = np.full(100, 4, np.float32), np.zeros(100, np.float32)
    library.copied_after_a_branch(out, x, launched)
    np.testing.assert_array_equal(out, np.full(100, 4 + launched))


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_copy_in_front_of_a_launch_in_a_loop(library: Library, turns: int) -> None:
    x, out = np.full(100, 1, np.float32), np.zeros(100, np.float32)
    library.copied_in_a_loop(out, x, turns)
    np.testing.assert_array_equal(out, np.full(100, turns))
    np.testing.assert_array_equal(x, np.full(100, 1 + turns))


def test_a_copy_by_a_callee(library: Library) -> None:
    x, out = np.zeros(100, np.float32), np.zeros(100, np.float32)
    library.copied_by_a_callee(out, x)
    np.testing.assert_array_equal(out, np.ones(100))


@pytest.mark.parametrize("wait", [False, True])
def test_work_that_a_callee_puts_behind_a_token(library: Library, wait: bool) -> None:
    x = np.zeros(100, np.float32)
    library.put_behind_a_token(x, wait)
    np.testing.assert_array_equal(x, np.ones(100))


NAMES = [
    "by_whom_gets_the_token",
    "on_the_callers_stream",
    "of_a_callees_callee",
    "copied_through_a_pointer",
    "added_through_a_pointer",
    "by_its_address",
    "out_of_a_box",
]


@pytest.mark.parametrize("name", NAMES)
def test_memory_by_other_names_and_in_other_functions(names: Library, name: str) -> None:
    x, out = np.full(100, 3, np.float32), np.zeros(100, np.float32)
    names.functions[name](out, x, True)
    np.testing.assert_array_equal(out, np.full(100, 4))


def test_one_array_for_two_arguments(names: Library) -> None:
    x, out = np.full(100, 3, np.float32), np.zeros(100, np.float32)
    names.twice_the_same(out, x, x)
    np.testing.assert_array_equal(out, np.full(100, 4))


def test_a_global(names: Library) -> None:
    """Each call adds one to it."""
    first, second = np.zeros(100, np.float32), np.zeros(100, np.float32)
    names.of_a_global(first)
    names.of_a_global(second)
    np.testing.assert_array_equal(second, first + 1)


def test_what_is_done_to_a_global_elsewhere_makes_no_argument_the_devices() -> None:
    library = on_host("""
    memref.global @g : memref<4xf32> = dense<1.0>
    func.func @total(%x: memref<4xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %v = memref.load %x[%c0] : memref<4xf32>
      return %v : f32
    }
    func.func @run() -> f32 {
      %g = memref.get_global @g : memref<4xf32>
      %v = call @total(%g) : (memref<4xf32>) -> f32
      return %v : f32
    }
    func.func @fill(%s: f32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %g = memref.get_global @g : memref<4xf32>
      scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
        memref.store %s, %g[%i] : memref<4xf32>
      }
      return
    }""")
    assert library.signatures["total"].args[0].space == "host"
    library.fill(3)
    assert library.run() == 3


def test_a_product_of_matrices() -> None:
    """On the CPU it is done at once. The streams of a driver would show it, and so does the wait in the code."""
    (item,) = emit(PROGRAMS / "unordered_names.mlir", "host-llvm")
    behind = item.data.decode().split("call void @mgpuSpMV(")[1]
    assert "@mgpuStreamWaitStream(" in behind[: behind.index("call void @mgpuMemcpy(")]
