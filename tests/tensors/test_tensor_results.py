"""Tensors that are results twice, in part, or of a choice: a store into one of them leaves the others as they are."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import PROGRAMS, on_host
from emulator.driver import shared
from emulator.on_device import compiled

from offload.runtime import Library

PROGRAM = PROGRAMS / "tensor_results.mlir"
X, Y = np.array([1, 2, 3, 4], np.int32), np.array([10, 20], np.int32)


def changed(value: np.ndarray) -> np.ndarray:
    return np.concatenate([[7], value[1:]])


def check(library: Library) -> None:
    def same(got: tuple, *wanted: np.ndarray) -> None:
        for result, value in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(result.numpy(), value)

    for times in (0, 1, 3):
        total = X * (times + 1)
        same(library.yielded(X, times), total, changed(total))
        same(library.part(X, times), changed(total), total[:2])
        same(library.again(X, times), 2 * X, changed(2 * X if times else X))
        same(library.both(X, times), X * 2**times, changed(X * 2**times))
    same(library.returned(X), 2 * X, changed(2 * X))
    for which, value in {1: 2 * X, 5: X * X, 0: 0 * X}.items():
        same(library.chosen(X, which), 2 * X, changed(value))
    for twice in (True, False):
        wanted, place = 2 * X, X[0] if twice else 0
        wanted[place : place + 2] = 2 * Y if twice else Y * Y
        same((library.placed(X, Y, twice),), wanted)
    rows = np.arange(32, dtype=np.float32).reshape(4, 8)
    same((library.inserted(rows, np.float32(7)),), np.concatenate([2 * rows[:2], np.full((1, 8), 7), 2 * rows[3:]]))


@pytest.mark.parametrize("opt", [0, 3])
def test_on_the_cpu(opt: int) -> None:
    """MLIR's bufferization gave results one memory that it took for two; the compiler ended at the last function."""
    check(on_host(PROGRAM, opt))


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_on_devices(chip: str) -> None:
    backend = "cuda" if chip.startswith("sm_") else "hip"
    with shared(backend).chip(chip):
        library = compiled(PROGRAM, chip)
        library.auto_stage = True
        check(library)
    shared(backend).check()


PLACED = """
func.func @argument(%v: f32, %into: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %t = tensor.from_elements %v, %v, %v : tensor<3xf32>
  %r = bufferization.materialize_in_destination %t in %into : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %r, %into : tensor<3xf32>, tensor<3xf32>
}
func.func @constant(%v: f32) -> (tensor<3xf32>, tensor<3xf32>) {
  %into = arith.constant dense<1.0> : tensor<3xf32>
  %t = tensor.from_elements %v, %v, %v : tensor<3xf32>
  %r = bufferization.materialize_in_destination %t in %into : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %r, %into : tensor<3xf32>, tensor<3xf32>
}
func.func @memory(%v: f32, %m: memref<3xf32>) -> tensor<3xf32> {
  %into = bufferization.to_tensor %m restrict writable : memref<3xf32> to tensor<3xf32>
  %t = tensor.from_elements %v, %v, %v : tensor<3xf32>
  %r = bufferization.materialize_in_destination %t in %into : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def test_what_is_placed_in_an_argument_is_in_a_copy_of_it() -> None:
    """It was refused, since the argument stays as it is."""
    library, ones = on_host(PLACED), np.ones(3, np.float32)
    for results in (library.argument(2.5, ones), library.constant(2.5)):
        np.testing.assert_array_equal([result.numpy() for result in results], [[2.5] * 3, [1] * 3])
    np.testing.assert_array_equal(ones, 1)
    np.testing.assert_array_equal(library.memory(2.5, ones).numpy(), [2.5] * 3)
    np.testing.assert_array_equal(ones, 2.5)
