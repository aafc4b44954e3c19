"""Products whose threads have several elements each: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "thread_tiles.mlir"

_random = np.random.default_rng(21)


def floats(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float32)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.einsum("nhwcij,ijcf->nhwf", windows, w)


def check(library: offload.Library | OnDevice, sizes: tuple[tuple[int, int, int], ...]) -> None:
    for m, k, n in sizes:
        a, b, c = floats(m, k), floats(k, n), floats(m, n)
        want = c + a @ b
        library.product(a, b, c)
        np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)
    a, b = (_random.integers(-128, 128, shape, np.int8) for shape in ((64, 12), (12, 96)))
    sums = np.ones((64, 96), np.int32)
    library.fours(a, b, sums)
    np.testing.assert_array_equal(sums, 1 + a.astype(np.int32) @ b.astype(np.int32))
    x, w, y = _random.standard_normal((2, 12, 15, 3)), _random.standard_normal((3, 2, 3, 16)), np.ones((2, 10, 14, 16))
    library.convolution(x, w, y)
    np.testing.assert_allclose(y, 1 + convolved(x, w), rtol=1e-12, atol=1e-12)
    x, w, y = floats(2, 3, 11, 21), floats(16, 3, 3, 2), np.ones((2, 16, 9, 20), np.float32)
    library.images(x, w, y)
    want = convolved(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(y, 1 + want, rtol=1e-5, atol=1e-5)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library, ((1, 1, 1), (4, 0, 5), (0, 3, 2), (2, 3, 0), (3, 7, 33), (65, 40, 31), (8, 100, 64)))
    a, b, c = floats(16, 40), floats(40, 16), np.zeros((16, 16), np.float32)
    library.few(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    x, y = floats(2, 64, 64, 16), np.full((2, 63, 63, 16), -9, np.float32)
    library.largest(x, floats(2, 2), y)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(1, 2))
    np.testing.assert_array_equal(y, windows.max((4, 5)))


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, ((3, 5, 33), (17, 8, 9)))


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


@pytest.mark.parametrize("width", [1024, 1000])
def test_neighbours_go_together_through_a_long_loop_around_a_short_one(width: int) -> None:
    """On the CPU: not each thread alone, with a vector of its four elements."""
    x, w, y = f"4x32x{width + 2}", "32x32x3", f"4x32x{width}"
    text = f"""
func.func @f(%x: memref<{x}xf32>, %w: memref<{w}xf32>, %y: memref<{y}xf32>) {{
  linalg.conv_1d_ncw_fcw ins(%x, %w : memref<{x}xf32>, memref<{w}xf32>) outs(%y : memref<{y}xf32>)
  return
}}
"""
    assert "fmul contract <8 x float>" in emit_text(text, "llvm", ["host:x86-64-v3"])
    a, b, c = floats(4, 32, width + 2), floats(32, 32, 3), floats(4, 32, width)
    want = c + np.einsum("nlck,fck->nfl", np.lib.stride_tricks.sliding_window_view(a, 3, axis=2).swapaxes(1, 2), b)
    on_host(text).f(a, b, c)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)


def test_neighbours_go_together_in_a_row_that_is_not_full() -> None:
    """On the CPU: eight, then four of those that a check lets pass, and not each thread alone."""
    kind = "memref<?x?x?xf32>"
    text = f"""
func.func @f(%x: {kind}, %w: {kind}, %y: {kind}) {{
  linalg.conv_1d_ncw_fcw ins(%x, %w : {kind}, {kind}) outs(%y : {kind})
  return
}}
"""
    emitted = emit_text(text, "llvm", ["host:x86-64-v3"])
    assert emitted.count("fmul contract <8 x float>") == 16 + 4  # four elements of 32 threads, and of eight
    assert emitted.count("fmul contract <4 x float>") == 4
    for width in (*range(1, 14), 24, 28, 31, 32, 39, 63, 65):
        x, w, y = floats(2, 3, width + 2), floats(5, 3, 3), floats(2, 5, width)
        windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
        want = y + np.einsum("nclk,fck->nfl", windows, w)
        on_host(text).f(x, w, y)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [56, 100])
def test_rows_of_blocks_are_full_where_they_can_be(width: int) -> None:
    """Not 32 threads and 24 others, or three times 32 and four."""
    text = f"""
func.func @f(%x: memref<9x{width + 1}xf32>, %y: memref<9x{width}xf32>) {{
  %part = memref.subview %x[0, 0] [9, {width}] [1, 1]
    : memref<9x{width + 1}xf32> to memref<9x{width}xf32, strided<[{width + 1}, 1]>>
  linalg.exp ins(%part : memref<9x{width}xf32, strided<[{width + 1}, 1]>>) outs(%y : memref<9x{width}xf32>)
  return
}}
"""
    assert f"threads in (%c{width if width < 64 else 50}, %c" in emit_text(text, "kernels")
    x, y = floats(9, width + 1), floats(9, width)
    on_host(text).f(x, y)
    np.testing.assert_allclose(y, np.exp(x[:, :width]), rtol=1e-5)


@pytest.mark.parametrize("rows", [60, 67])
def test_steps_are_added_in_order(rows: int) -> None:
    """As one thread for each element did, in tiles of blocks, too: sums of halves are rounded at each step, and more of
    them differ."""
    text = f"""
func.func @f(%a: memref<{rows}x300xf16>, %b: memref<300x96xf16>, %c: memref<{rows}x96xf16>) {{
  linalg.matmul ins(%a, %b : memref<{rows}x300xf16>, memref<300x96xf16>) outs(%c : memref<{rows}x96xf16>)
  return
}}
"""
    a, b, c = (_random.standard_normal(shape).astype(np.float16) for shape in ((rows, 300), (300, 96), (rows, 96)))
    want = c.copy()
    for k in range(300):
        want += a[:, k, None] * b[None, k]
    on_host(text).f(a, b, c)
    np.testing.assert_array_equal(c, want)
