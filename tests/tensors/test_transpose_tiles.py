"""Transposes that blocks do by tiles: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "transpose_tiles.mlir"

_random = np.random.default_rng(22)


def numbers(*shape: int, dtype: type[np.number] = np.float32) -> np.ndarray:
    return (100 * _random.standard_normal(shape)).astype(dtype)


def check(library: offload.Library | OnDevice, shapes: tuple[tuple[int, int], ...], lengths: tuple[int, ...]) -> None:
    for shape in shapes:
        x, out = numbers(*shape), np.full(shape[::-1], np.nan, np.float32)
        library.transpose(x, out)
        np.testing.assert_array_equal(out, x.T)
    for length in lengths:
        a, b = numbers(70, length, dtype=np.float64), numbers(70, length, dtype=np.int32)
        c, old = numbers(length, 70, dtype=np.float64), numbers(length, 70, dtype=np.float64)
        out = old.copy()
        library.mixed(a, b, c, out)
        np.testing.assert_allclose(out, a.T * c + (b.T + np.arange(70)) + old, rtol=1e-14)
    x, out = numbers(96, 64, dtype=np.int16), np.zeros((64, 96), np.int16)
    library.whole(x, out)
    np.testing.assert_array_equal(out, x.T)
    x, out = numbers(2, 9, 11, 40, dtype=np.float16), np.zeros((2, 40, 9, 11), np.float16)
    library.channels(x, out)
    np.testing.assert_array_equal(out, x.transpose(0, 3, 1, 2))
    x, out = numbers(100, 90), np.zeros((72, 80), np.float32).T
    library.columns(x, out)
    np.testing.assert_array_equal(out, -x[3:83, 5:77])


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    shapes = ((0, 0), (1, 1), (0, 50), (31, 40), (32, 32), (33, 64), (100, 1000), (257, 129))
    check(library, shapes, (0, 1, 31, 32, 33, 200))
    x, out = numbers(3, 2000), np.zeros((2000, 3), np.float32)
    library.few(x, out)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library, ((3, 40), (37, 65)), (33,))


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)
