"""Products of few rows with rows, by subgroups: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "row_products.mlir"

_random = np.random.default_rng(41)


def floats(*shape: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    return _random.standard_normal(shape).astype(dtype)


def numbers(*shape: int) -> np.ndarray:
    return _random.integers(-1000, 1000, shape, np.int32)


def check_layer(library: offload.Library | OnDevice, sizes: Iterable[tuple[int, int, int]]) -> None:
    for rows, columns, steps in sizes:
        x, w, y = floats(rows, steps), floats(columns, steps), floats(rows, columns)
        want = y + x @ w.T
        library.layer(x, w, y)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4, err_msg=f"{rows} rows, {columns}, {steps} steps")


def check_others(library: offload.Library | OnDevice, keys: Iterable[int]) -> None:
    x, w, y = floats(5, 96, dtype=np.float16), floats(7, 96, dtype=np.float16), np.ones((5, 7), np.float32)
    library.halves(x, w, y)
    np.testing.assert_allclose(y, 1 + x.astype(np.float32) @ w.astype(np.float32).T, rtol=1e-4, atol=1e-4)
    for count in keys:
        query, key, scores = floats(3, 1, 64), floats(3, count, 64), np.ones((3, 1, count), np.float32)
        library.scores(query, key, scores)
        np.testing.assert_allclose(scores, 1 + query @ key.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)
    x, w, y = floats(8, 63), floats(16, 63), np.ones((8, 16), np.float32)
    library.short(x, w, y)
    np.testing.assert_allclose(y, 1 + x @ w.T, rtol=1e-4, atol=1e-4)


def check_pieces(library: offload.Library | OnDevice) -> None:
    """Rows that GPUs go through by pieces, and rows that look like it."""
    check_layer(library, ((1, 5, 128), (5, 3, 260), (3, 9, 384), (2, 3, 130)))
    for rows, columns, steps in ((1, 6, 128), (5, 3, 516), (4, 2, 514)):
        x, w, y = floats(rows, steps, dtype=np.float16), floats(columns, steps), floats(rows, columns)
        want = y + x.astype(np.float32) @ w.T
        library.mixed(x, w, y)
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
    a, b = (_random.integers(-128, 128, shape, np.int8) for shape in ((3, 512), (7, 512)))
    z = np.ones((3, 7), np.int32)
    library.bytes(a, b, z)
    np.testing.assert_array_equal(z, 1 + a.astype(np.int32) @ b.astype(np.int32).T)
    x, y, most = numbers(6, 264)[::2, 4:], numbers(5, 264)[:, 4:], np.zeros((5, 3), np.int32).T
    library.distances(x, y, most)
    np.testing.assert_array_equal(most, (abs(x[:, None] - y[None]) + np.arange(260, dtype=np.int32)).max(-1))


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    sizes = (
        (rows, columns, steps) for rows in (0, 1, 2, 5, 63) for columns in (0, 1, 3, 8, 70) for steps in (64, 65, 200)
    )
    check_layer(library, [*sizes, (3, 4, 0), (3, 4, 1), (3, 4, 63), (70, 5, 100), (70, 65, 100)])
    check_others(library, (0, 1, 3, 4, 70))
    check_pieces(library)
    x, y, most = numbers(6, 150)[::2, 3:110], numbers(5, 120)[:, 13:], np.zeros((5, 3), np.int32).T
    library.distances(x, y, most)
    np.testing.assert_array_equal(most, (abs(x[:, None] - y[None]) + np.arange(107, dtype=np.int32)).max(-1))


def test_what_is_no_number_stays_in_its_row() -> None:
    x, w, y = floats(5, 64), floats(3, 64), np.zeros((5, 3), np.float32)
    x[4, 63], w[2, 0] = np.nan, np.inf
    on_host(PROGRAM).layer(x, w, y)
    assert np.isnan(y[4]).all()
    assert np.isfinite(y[:4, :2]).all()
    np.testing.assert_array_equal(y[:4, 2], np.inf * np.sign(x[:4, 0]))


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check_layer(library, ((0, 3, 64), (1, 5, 64), (5, 3, 65), (9, 70, 97)))
        check_others(library, (1, 5))
        check_pieces(library)


def test_wide_integers_are_no_pieces() -> None:
    program = """
func.func @f(%x: memref<4x512xi256>, %w: memref<3x512xi256>, %y: memref<4x3xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x512xi256>, memref<3x512xi256>) outs(%y : memref<4x3xi32>) {
  ^bb0(%a: i256, %b: i256, %sum: i32):
    %product = arith.muli %a, %b : i256
    %part = arith.trunci %product : i256 to i32
    %more = arith.addi %sum, %part : i32
    linalg.yield %more : i32
  }
  return
}
"""
    assert "offload.wide_rows" not in emit_text(program, "kernels")


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


def test_products_behind_zeros_have_tiles() -> None:
    """Taken for a sum of each row of its own, as the fill before it may be, a product was read once for each row."""
    program = """
func.func @f(%x: memref<?x?xf16>, %w: memref<?x?xf16>, %y: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<?x?xf32>)
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                 affine_map<(i, j, k) -> (i, j)>]
      ins(%x, %w : memref<?x?xf16>, memref<?x?xf16>) outs(%y : memref<?x?xf32>)
  return
}
"""
    # The fill; large tiles, small ones; several rows of x, one of them; what is too short for all these.
    assert emit_text(program, "kernels").count("gpu.launch_func") == 6
    x, w, y = floats(70, 96, dtype=np.float16), floats(65, 96, dtype=np.float16), floats(70, 65)
    on_host(program).f(x, w, y)
    np.testing.assert_allclose(y, x.astype(np.float32) @ w.astype(np.float32).T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chip", ["host", "gfx90a", "gfx942", "gfx1100", "gfx1100,wave64", "gfx1201", "sm_80"])
def test_sums_of_bytes_run_over(chip: str) -> None:
    """LLVM's code generator for AMD GPUs crashed where it would make dot products of them."""
    bytes_alone = """
func.func @f(%x: memref<?x?xi8>, %w: memref<?x?xi8>, %y: memref<?x?xi8>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                   affine_map<(i, j, k) -> (i, j)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x?xi8>, memref<?x?xi8>) outs(%y : memref<?x?xi8>) {
  ^bb0(%a: i8, %b: i8, %sum: i8):
    %product = arith.muli %a, %b : i8
    %more = arith.addi %sum, %product : i8
    linalg.yield %more : i8
  }
  return
}
"""
    with running_on(chip, bytes_alone) as library:
        for rows, columns, steps in ((3, 5, 20), (5, 3, 70), (66, 65, 40)):
            x, w, y = (
                _random.integers(-128, 128, shape, np.int8)
                for shape in ((rows, steps), (columns, steps), (rows, columns))
            )
            want = (y.astype(np.int64) + x.astype(np.int64) @ w.astype(np.int64).T).astype(np.int8)
            library.f(x, w, y)
            np.testing.assert_array_equal(y, want)
