"""Functions that are called through pointers: what they are given is the device's where a kernel takes it."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import shared
from emulator.on_device import emulated

import offload

CHOSEN = """
func.func private @doubled(%x: memref<?xf32>) -> memref<?xf32> {
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  return %x : memref<?xf32>
}
func.func private @squared(%x: memref<?xf32>) -> memref<?xf32> {
  linalg.mul ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  return %x : memref<?xf32>
}
func.func @f(%square: i1, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %one = func.constant @doubled : (memref<?xf32>) -> memref<?xf32>
  %other = func.constant @squared : (memref<?xf32>) -> memref<?xf32>
  %chosen = arith.select %square, %other, %one : (memref<?xf32>) -> memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  %r = func.call_indirect %chosen(%a) : (memref<?xf32>) -> memref<?xf32>
  %s = func.call_indirect %chosen(%y) : (memref<?xf32>) -> memref<?xf32>
  linalg.add ins(%r, %s : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  memref.dealloc %a : memref<?xf32>
  return
}
"""


@pytest.mark.parametrize("chip", ["sm_90", "gfx942"])
def test_what_a_function_takes_that_is_called_through_a_pointer_is_the_device_s(chip: str) -> None:
    target, backend = emulated(chip)
    library = offload.compile(CHOSEN, targets=[target])
    assert [argument.space for argument in library.f.signature.args] == ["any", "any", "device"]
    with shared(backend).chip(chip):
        library.use(backend)
        library.auto_stage = True
        for square in (True, False):
            x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
            library.f(square, x, y)
            np.testing.assert_array_equal(y, x * x + 1 if square else 2 * x + 2)
    shared(backend).check()
