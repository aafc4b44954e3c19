"""How AMD kernels find their blocks and arguments, on emulated devices that promise no more than AMDGPUUsage does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from emulator.driver import Driver, shared
from emulator.on_device import OnDevice

import offload

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1201,wave64")


@pytest.fixture
def driver() -> Iterator[Driver]:
    yield shared()
    shared().check()


def compiled(source: str, target: str) -> OnDevice:
    library = offload.compile(source, targets=[f"rocdl:{target}"])
    library.use("hip")
    return OnDevice(library)


# Adds 1 at the block's place along one axis.
PLACES = """
gpu.module @m {{ gpu.func @k(%out: memref<?xi32>) kernel {{
  %place = gpu.block_id {axis}
  %one = arith.constant 1 : i32
  %before = memref.atomic_rmw addi %one, %out[%place] : (i32, memref<?xi32>) -> i32
  gpu.return
}} }}
"""


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("chip", CHIPS)
def test_blocks_along_an_axis_where_others_go_along_all(driver: Driver, chip: str, axis: int) -> None:
    """Chips since gfx12 have the places along y and z in one register: a kernel that asks for one must not get both."""
    grid = (2, 3, 4)
    out = np.zeros(4, np.int32)
    with driver.chip(chip.split(",")[0]):
        compiled(PLACES.format(axis="xyz"[axis]), chip).kernels.k[grid, 1](out)
    expected = [24 // grid[axis] if place < grid[axis] else 0 for place in range(4)]
    np.testing.assert_array_equal(out, expected)
