"""Largest elements and their places, which linalg finds step by step: as NumPy finds them, also on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "places.mlir"

_random = np.random.default_rng(41)


def numbers(*shape: int) -> np.ndarray:
    """So few different ones that most are there several times."""
    return _random.integers(-20, 20, shape).astype(np.float32)


def numpy_of(result: Any) -> np.ndarray:
    return result if isinstance(result, np.ndarray) else result.numpy()


def check(library: offload.Library | OnDevice, sizes: list[tuple[int, int]]) -> None:
    for rows, steps in sizes:
        x, y = numbers(rows, steps), numbers(rows)
        x[_random.random(x.shape) < 0.1] = np.nan
        if rows > 2:
            x[2] = np.nan
        most, place = np.full(rows, 0.5, np.float32), np.full(rows, -7)
        v = np.where(np.isnan(x), -np.inf, x - y[:, None])
        found = np.append(np.full((rows, 1), 0.5), v, 1)  # what was there before is the first of all
        library.rows(x, y, most, place)
        np.testing.assert_array_equal(most, found.max(1))
        np.testing.assert_array_equal(place, np.where(found.argmax(1) > 0, found.argmax(1) - 1, -7))
    for high in (-5.0, 1000.0):
        x, least, place = numbers(5000).astype(np.float64), np.array(high), np.array(-7, np.int32)
        library.least(x, least, place)
        assert (least, place) == ((-20, x.argmin()) if high > 0 else (min(-20, high), x.argmin()))
    x, least, place = numbers(5000).astype(np.float64), np.array(-20.0), np.array(-7, np.int32)
    library.least(x, least, place)
    assert (least, place) == (-20, -7)
    for steps, columns in sizes:
        x = _random.integers(-(2**15), 2**15, (steps, columns), np.int16)
        least, place = np.full(columns, -1, np.int16), np.zeros(columns, np.int32)
        library.columns(x, least, place)
        if steps:
            np.testing.assert_array_equal(least.view(np.uint16), x.view(np.uint16).min(0))
            np.testing.assert_array_equal(place, x.view(np.uint16).argmin(0))
    x = numbers(3, 100, 2)
    np.testing.assert_array_equal(numpy_of(library.tosa(x)), x.argmax(1))
    x[1, 40, 1] = x[1, 50, 1] = np.nan
    np.testing.assert_array_equal(numpy_of(library.tosa(x)), x.argmax(1))  # NumPy's is the first NaN too
    np.testing.assert_array_equal(numpy_of(library.tosa_rows(x[:, :, 1].copy())), x[:, :, 1].argmax(1))
    whole, most, place = numbers(4, 100).astype(np.int32), np.full(4, -99, np.int32), np.zeros(4, np.int32)
    library.last(whole, most, place)
    np.testing.assert_array_equal(place, 99 - whole[:, ::-1].argmax(1))


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM), [(1, 1), (3, 70), (4, 0), (5, 3000), (1, 40000), (300, 300), (2000, 64)])


@pytest.mark.parametrize("chip", ["sm_90", "gfx942", "gfx1100"])
def test_on_emulated_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, [(1, 1), (3, 70), (2, 2100), (40, 300)])


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=list(ALL_TARGETS))


OF_SMALL_FLOATS = """
func.func @f(%x: memref<8x300x{0}>, %most: memref<8x{0}>, %place: memref<8xi32>) {{
  linalg.generic {{
    indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>],
    iterator_types = ["parallel", "reduction"]
  }} ins(%x : memref<8x300x{0}>) outs(%most, %place : memref<8x{0}>, memref<8xi32>) {{
  ^bb0(%a: {0}, %m: {0}, %p: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %c = arith.cmpf ogt, %a, %m : {0}
    %v = arith.maximumf %a, %m : {0}
    %n = arith.select %c, %j, %p : i32
    linalg.yield %v, %n : {0}, i32
  }}
  return
}}
"""


@pytest.mark.parametrize(("kind", "dtype"), [("f8E4M3FN", "float8_e4m3fn"), ("f8E5M2", "float8_e5m2")])
def test_types_without_infinity(kind: str, dtype: str) -> None:
    import ml_dtypes

    x = _random.integers(-100, 100, (8, 300)).astype(getattr(ml_dtypes, dtype))
    most, place = np.full(8, -200, x.dtype), np.full(8, -1, np.int32)
    on_host(OF_SMALL_FLOATS.format(kind)).f(x, most, place)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(most.astype(np.float32), wide.max(1))
    np.testing.assert_array_equal(place, wide.argmax(1))


THROUGH_A_BYTE = """
func.func @f(%x: memref<4x300xf32>, %most: memref<4xf32>, %place: memref<4xi32>) {
  linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : memref<4x300xf32>) outs(%most, %place : memref<4xf32>, memref<4xi32>) {
  ^bb0(%a: f32, %m: f32, %p: i32):
    %i = linalg.index 1 : index
    %byte = arith.index_cast %i : index to i8
    %wide = arith.index_castui %byte : i8 to index
    %j = arith.index_cast %wide : index to i32
    %c = arith.cmpf ogt, %a, %m : f32
    %v = arith.select %c, %a, %m : f32
    %n = arith.select %c, %j, %p : i32
    linalg.yield %v, %n : f32, i32
  }
  return
}
"""


def test_a_place_of_which_a_byte_is_kept() -> None:
    x = np.tile(np.arange(300, dtype=np.float32), (4, 1))
    most, place = np.full(4, -1, np.float32), np.zeros(4, np.int32)
    on_host(THROUGH_A_BYTE).f(x, most, place)
    np.testing.assert_array_equal(place, np.full(4, 299 % 256))
