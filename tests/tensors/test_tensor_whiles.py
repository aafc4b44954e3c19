"""Loops whose end their tensors decide: the next iteration has what this one made, and copies it only where it must."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.driver import shared
from emulator.on_device import compiled

FIBONACCI = """
#id = affine_map<(i) -> (i)>
func.func @f(%limit: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %outside = tensor.empty() : tensor<8xf32>
  %r:2 = scf.while (%x = %ones, %y = %ones) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %v = tensor.extract %y[%c0] : tensor<8xf32>
    %more = arith.cmpf olt, %v, %limit : f32
    scf.condition(%more) %x, %y : tensor<8xf32>, tensor<8xf32>
  } do {
  ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
    %own = tensor.empty() : tensor<8xf32>
    %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(INTO : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    scf.yield YIELDED : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
"""
MADE = ["%own", "%outside", "%x", "%y"]
"""Where an iteration's sum goes: memory made for it, by the loop's author before the loop, or that of what came."""


def source(into: str, yielded: str) -> str:
    return FIBONACCI.replace("INTO", into).replace("YIELDED", yielded)


def expected(limit: float, yielded: str) -> tuple[float, float]:
    x = y = 1.0
    while y < limit:
        values = {"%x": x, "%y": y, "%z": x + y}
        x, y = (values[name] for name in yielded.split(", "))
    return x, y


@pytest.mark.parametrize("yielded", ["%y, %z", "%z, %z", "%x, %z"])
@pytest.mark.parametrize("into", MADE)
def test_each_iteration_has_what_the_last_one_made(into: str, yielded: str) -> None:
    for limit in (0.0, 2.0, 3.0, 9.0):
        made = on_host(source(into, yielded)).f(np.float32(limit))
        for array, value in zip(made, expected(limit, yielded), strict=True):
            np.testing.assert_array_equal(array.numpy(), np.full(8, value, np.float32))


@pytest.mark.parametrize("chip", ["gfx942", "sm_90"])
def test_on_devices(chip: str) -> None:
    with shared("hip" if chip.startswith("gfx") else "cuda").chip(chip):
        for into in ("%own", "%outside"):
            made = compiled(source(into, "%y, %z"), chip).f(np.float32(9))
            for array, value in zip(made, expected(9, "%y, %z"), strict=True):
                np.testing.assert_array_equal(array.numpy(), np.full(8, value, np.float32))


def copies(text: str) -> int:
    """In the loop of what is emitted."""
    _, _, loop = text.partition("scf.while")
    return loop.partition("scf.yield")[0].count("gpu.memcpy")


def test_new_memory_is_handed_on_and_not_copied() -> None:
    assert copies(emit_text(source("%own", "%y, %z"), "kernels")) == 0
    assert copies(emit_text(source("%outside", "%y, %z"), "kernels")) == 0  # an iteration has one of its own instead
    assert copies(emit_text(source("%own", "%z, %z"), "kernels")) > 0  # one sum in two places


WRITTEN = """
func.func @f(%m: memref<8xf32>, %t: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %ten = arith.constant 10.0 : f32
  %r = scf.while (%x = %m) : (memref<8xf32>) -> memref<8xf32> {
    %v = memref.load %x[%c0] : memref<8xf32>
    %more = arith.cmpf olt, %v, %ten : f32
    %copy = memref.alloc() : memref<8xf32>
    memref.copy %x, %copy : memref<8xf32> to memref<8xf32>
    scf.condition(%more) %copy : memref<8xf32>
  } do {
  ^bb0(%x: memref<8xf32>):
    memref.store %ten, %x[%c0] : memref<8xf32>
    %next = memref.alloc() : memref<8xf32>
    memref.copy %x, %next : memref<8xf32> to memref<8xf32>
    scf.yield %next : memref<8xf32>
  }
  return %t : tensor<8xf32>
}
"""


def test_what_an_author_copies_is_copied() -> None:
    m = np.zeros(8, np.float32)
    on_host(WRITTEN).f(m, m + 1)
    np.testing.assert_array_equal(m, np.zeros(8))
