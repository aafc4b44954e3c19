"""Loops in another order than memory has: results as NumPy's, on the CPU and on emulated devices, and the time."""

from __future__ import annotations

import time

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "order_loops.mlir"

_random = np.random.default_rng(9)


def floats(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def windows(x: np.ndarray, rows: int, columns: int, step: int = 1) -> np.ndarray:
    """[n, y, x, i, j, c]: what each element of a convolution's result sees of the images."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (rows, columns), (1, 2))
    return seen[:, ::step, ::step].transpose(0, 1, 2, 4, 5, 3)


def check(library: offload.Library | OnDevice) -> None:
    dy, w, dx = floats(2, 9, 11, 24), floats(3, 3, 20, 24), floats(2, 7, 9, 20)
    expected = dx + np.einsum("nyxijo,ijco->nyxc", windows(dy, 3, 3), w)
    library.of_image(dy, w, dx)
    np.testing.assert_allclose(dx, expected, rtol=1e-4, atol=1e-4)
    for batch, channels, filters in ((2, 5, 70), (1, 1, 1), (3, 4, 0)):
        x, w = floats(batch, 9, 8, channels), floats(filters, 3, 2, channels)
        y = floats(batch, 4, 4, filters)
        expected = y + np.einsum("nyxijc,fijc->nyxf", windows(x, 3, 2, 2), w)
        library.channels_last(x, w, y)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    x = _random.integers(0, 4, (5, 6, 80), np.int32)
    most, place = np.full(80, -1, np.int32), np.full(80, -1, np.int32)
    library.first(x, most, place)
    ordered = x.transpose(1, 0, 2).reshape(30, 80)
    np.testing.assert_array_equal(most, ordered.max(0))
    np.testing.assert_array_equal(place, ordered.argmax(0))


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library)
    library.auto_stage = True
    for rows in (7, 1):
        x, dy, dw = floats(2, rows + 2, 10, 20), floats(2, rows, 8, 24), floats(3, 3, 20, 24)
        expected = dw + np.einsum("nijyxc,nijo->yxco", windows(x, rows, 8).transpose(0, 3, 4, 1, 2, 5), dy)
        result = np.asarray(library.of_filter(x, dy, dw).numpy())
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


def test_no_order_is_much_slower() -> None:
    """A filter with its input channels in its rows took seven times as long as one with its output channels there."""
    text = "\n".join(
        f"func.func @{name}(%x: memref<4x30x30x64xf32>, %w: memref<{shape}xf32>, %y: memref<4x28x28x64xf32>) {{"
        f"linalg.conv_2d_nhwc_{name} {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}"
        f" ins(%x, %w : memref<4x30x30x64xf32>, memref<{shape}xf32>) outs(%y : memref<4x28x28x64xf32>) return }}"
        for name, shape in (("hwcf", "3x3x64x64"), ("fhwc", "64x3x3x64"))
    )
    library = on_host(text)
    x, y = floats(4, 30, 30, 64), np.zeros((4, 28, 28, 64), np.float32)
    took = {}
    for _ in range(7):
        for name, shape in (("hwcf", (3, 3, 64, 64)), ("fhwc", (64, 3, 3, 64))):
            w = floats(*shape)
            begin = time.perf_counter()
            getattr(library, name)(x, w, y)
            took[name] = min(took.get(name, 9.0), time.perf_counter() - begin)
    assert took["fhwc"] < 3 * took["hwcf"]


STORES = """
func.func @f(%x: memref<SHAPE>, %sum: memref<16xi32>, %last: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  linalg.generic {
      indexing_maps = [affine_map<(o, p, i) -> (PLACE)>, affine_map<(o, p, i) -> (p)>],
      iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<SHAPE>) outs(%sum : memref<16xi32>) {
  ^bb0(%v: i32, %s: i32):
    %outer = linalg.index 0 : index
    %inner = linalg.index 2 : index
    %column = linalg.index 1 : index
    %both = arith.addi %outer, %inner : index
    %place = arith.addi %both, %column : index
    %is = arith.cmpi eq, %place, %c5 : index
    %first = arith.cmpi eq, %column, %c0 : index
    %stores = arith.andi %is, %first : i1
    scf.if %stores {
      memref.store %v, %last[%c0] : memref<1xi32>
    }
    %t = arith.addi %s, %v : i32
    linalg.yield %t : i32
  }
  return
}
"""


@pytest.mark.parametrize(
    ("place", "shape", "last"), [("o, p, i", (6, 16, 40), (5, 0, 0)), ("i, p, o", (40, 16, 6), (0, 0, 5))]
)
def test_bodies_that_write_keep_the_authors_order(place: str, shape: tuple[int, ...], last: tuple[int, ...]) -> None:
    """Of the steps that write one place the last one's value stays."""
    source = STORES.replace("PLACE", place).replace("SHAPE", "x".join([*map(str, shape), "i32"]))
    x = np.arange(6 * 16 * 40, dtype=np.int32).reshape(shape)
    sums, stored = np.zeros(16, np.int32), np.zeros(1, np.int32)
    on_host(source).f(x, sums, stored)
    np.testing.assert_array_equal(sums, x.sum((0, 2)))
    assert stored == x[last]
