"""Dimensions that lie side by side in memory are one loop: results as NumPy's, on the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "one_piece.mlir"

_random = np.random.default_rng(5)


def check(library: offload.Library | OnDevice) -> None:
    for shape in ((2, 3, 5, 7), (1, 1, 1, 1), (3, 0, 2, 4), (2, 3, 40, 1)):
        x = _random.standard_normal(shape).astype(np.float32)
        bias, y = _random.standard_normal(shape[-1]).astype(np.float32), np.zeros(shape, np.float32)
        library.biased(x, bias, y)
        np.testing.assert_array_equal(y, x + bias)
        sums = np.ones(shape[:2], np.float32)
        library.of_images(x, sums)
        np.testing.assert_allclose(sums, 1 + x.sum((2, 3)), rtol=1e-5, atol=1e-5)
    x, y = _random.standard_normal((2, 3, 5, 7)).astype(np.float32), np.zeros((5, 7, 2, 3), np.float32)
    library.turned(x, y)
    np.testing.assert_array_equal(y, x.transpose(2, 3, 0, 1))
    filled = np.zeros((2, 3, 4, 7, 2), np.float32)
    library.filled(2.5, filled)
    assert np.all(filled == 2.5)
    numbers, most = _random.integers(-99, 99, (40, 30), np.int32), np.full((), -500, np.int32)
    library.largest(numbers, most)
    assert most == numbers.max()
    counted = np.zeros((2, 3, 5, 7), np.int32)
    library.counted(counted)
    np.testing.assert_array_equal(counted, np.indices(counted.shape)[2])


def check_parts(library: offload.Library) -> None:
    whole, y = _random.standard_normal((4, 4, 5, 10)).astype(np.float32), np.zeros((4, 3, 5, 8), np.float32)
    library.parts(whole[:, :3, :, :8], y)
    np.testing.assert_allclose(y, np.exp(whole[:, :3, :, :8]), rtol=1e-6)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library)
    check_parts(library)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)
