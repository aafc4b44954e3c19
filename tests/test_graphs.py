"""Graphs of small operations on tensors, as other compilers lower them, for the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, on_host
from emulator.on_device import OnDevice
from emulator.running import running_on

import offload

PROGRAM = PROGRAMS / "graphs.mlir"
RE, IM = (grid.astype(np.float32) for grid in np.meshgrid(np.linspace(-2, 1, 8), np.linspace(-1, 1, 6)))
BYTES = np.arange(0, 256, 5, dtype=np.uint8)


def escapes(steps: int) -> np.ndarray:
    x, y, count = np.zeros_like(RE), np.zeros_like(RE), np.zeros(RE.shape, np.int32)
    for _ in range(steps):
        inside = x * x + y * y < 4
        next_x, next_y = x * x - y * y + RE, x * y + x * y + IM
        x, y, count = np.where(inside, next_x, x), np.where(inside, next_y, y), count + inside
    return count


def check(library: offload.Library | OnDevice) -> None:
    for steps in (0, 1, 12):
        np.testing.assert_array_equal(library.escapes(RE, IM, steps).numpy(), escapes(steps))
    for times in (0, 1, 3):
        np.testing.assert_array_equal(library.halved(BYTES, times).numpy(), BYTES >> times)
    words, largest = library.table()
    np.testing.assert_array_equal(words.numpy(), np.array([1, 65534, 300], np.uint16))
    np.testing.assert_array_equal(largest.numpy(), np.uint32(2**32 - 1))
    sums, products = library.waves(RE[0].copy())
    np.testing.assert_allclose(sums.numpy(), np.sin(RE[0]) + RE[0], rtol=1e-5)
    np.testing.assert_allclose(products.numpy(), np.sin(RE[0]) * RE[0], rtol=1e-5)


def test_on_the_cpu() -> None:
    library = on_host(PROGRAM)
    check(library)
    assert BYTES[1] == 5  # what came is as it was
    assert str(library.halved) == "<offload function halved(x: uint8[n], times: int64) -> uint8[m]>"


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    with running_on(chip, PROGRAM) as library:
        check(library)


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)
