"""How AMD kernels find their blocks and arguments, on emulated devices that promise no more than AMDGPUUsage does."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import Driver
from emulator.on_device import OnDevice, compiled

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1201,wave64")


# Adds 1 at the place of the block, or of the thread, along one axis.
PLACES = """
gpu.module @m {{ gpu.func @k(%out: memref<?xi32>) kernel {{
  %place = gpu.{what}_id {axis}
  %one = arith.constant 1 : i32
  %before = memref.atomic_rmw addi %one, %out[%place] : (i32, memref<?xi32>) -> i32
  gpu.return
}} }}
"""


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("what", ["block", "thread"])
@pytest.mark.parametrize("chip", CHIPS)
def test_places_along_an_axis_where_others_go_along_all(driver: Driver, chip: str, what: str, axis: int) -> None:
    """They share registers: those of threads in all of these chips, those of blocks along y and z since gfx12."""
    sizes, out = (2, 3, 4), np.zeros(4, np.int32)
    with driver.chip(chip.split(",")[0]):
        kernel = OnDevice(compiled(PLACES.format(what=what, axis="xyz"[axis]), chip)).kernels.k
        kernel[(sizes, 1) if what == "block" else (1, sizes)](out)
    expected = [24 // sizes[axis] if place < sizes[axis] else 0 for place in range(4)]
    np.testing.assert_array_equal(out, expected)
