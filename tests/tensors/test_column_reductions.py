"""Columns, rows in pieces and long rows that linalg reduces: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import time

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "column_reductions.mlir"

_random = np.random.default_rng(31)


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, of which no order of additions rounds a sum."""
    return _random.integers(-4, 5, shape).astype(np.float32)


def check(library: offload.Library | OnDevice, sizes: list[tuple[int, int]]) -> None:
    for steps, columns in sizes:
        x, y = whole(steps, columns), whole(columns)
        want = y + x.sum(0)
        library.sums(x, y)
        np.testing.assert_array_equal(y, want)
    x, most, last = whole(1000, 70), np.zeros(70, np.float32), np.zeros(70, np.int32)
    x[17, 3] = np.nan
    library.both(x, most, last)
    np.testing.assert_array_equal(most, np.maximum(x.max(0), 0))
    np.testing.assert_array_equal(last, 999 * np.arange(70))
    for shape in ((17, 5, 17, 3), (20, 2, 1, 33), (0, 5, 3, 3), (20, 3, 0, 3)):
        x, y = whole(*shape).astype(np.float64), np.ones((shape[1], shape[3]))
        library.between(x, y)
        np.testing.assert_array_equal(y, 1 + x.sum((0, 2)))
    few, y = _random.integers(-9, 9, (20, 6, 3), np.int16), np.ones((6, 3), np.int16)
    library.few(few, y)
    np.testing.assert_array_equal(y, 1 + few.sum(0))
    for shape in ((4, 3, 8, 8), (2, 3, 5, 5), (0, 3, 8, 8), (2, 3, 0, 9), (3, 1, 33, 1)):
        x, y = whole(*shape), np.ones(shape[1], np.float32)
        library.channels(x, y)
        np.testing.assert_array_equal(y, 1 + x.sum((0, 2, 3)))
    x, y = whole(8, 6, 20, 20), np.ones(6, np.float32)
    library.of_images(x, y)
    np.testing.assert_array_equal(y, 1 + x.sum((0, 2, 3)))
    pieces, y = _random.integers(-9, 9, (3, 2, 5, 4, 4, 36), np.int32), np.ones((2, 4), np.int32)
    library.pieces(pieces, y)
    np.testing.assert_array_equal(y, 1 + pieces.sum((0, 2, 4, 5)))
    for name, shape in (
        ("shares", (3, 3000)),
        ("any_shares", (2, 2100)),
        ("any_shares", (5, 100)),
        ("any_shares", (2, 3)),
    ):
        x = _random.standard_normal(shape).astype(np.float32)
        powers = np.exp(x)
        getattr(library, name)(x)
        np.testing.assert_allclose(x, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM), [(300, 40), (256, 1), (1000, 33), (255, 33), (3, 5), (0, 4), (256, 0), (257, 64)])


@pytest.mark.parametrize("chip", ["gfx90a", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, [(300, 40), (9, 33)])


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


def test_as_tensors() -> None:
    """What a bias' gradient and a batch normalization look like where they come from."""
    text = """
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%y : tensor<?xf32>) dimensions = [0]
  return %r : tensor<?xf32>
}
"""
    x, y = whole(500, 37), whole(37)
    np.testing.assert_array_equal(on_host(text).f(x, y).numpy(), y + x.sum(0))
    assert "scf.for" not in emit_text(text, "kernels").split("gpu.module")[0]


def test_tall_columns_take_no_longer_than_a_thread_for_each() -> None:
    library = on_host(PROGRAM)
    x, y = np.ones((100000, 64), np.float32), np.zeros(64, np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        library.sums(x, y)
        times.append(time.perf_counter() - start)
    np.testing.assert_array_equal(y, 500000)
    start = time.perf_counter()
    for _ in range(5):
        x.sum(0)
    assert min(times) < 5 * (time.perf_counter() - start) / 5


def test_channels_take_no_longer_than_rows_of_one_piece() -> None:
    """Threads took their steps one by one, sixty times as long, where the first one of a row was left out."""
    library = on_host(PROGRAM)
    x, y = np.ones((4, 3, 512, 512), np.float32), np.zeros(3, np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        library.channels(x, y)
        times.append(time.perf_counter() - start)
    np.testing.assert_array_equal(y, 5 * 2**20)
    start = time.perf_counter()
    for _ in range(5):
        x.sum((0, 2, 3))
    assert min(times) < 4 * (time.perf_counter() - start) / 5
