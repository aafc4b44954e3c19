"""The kernels of tests/conformance executed as AMD machine code on the CPU (tests/emulator), against NumPy.

Every run takes each kernel on another chip; ``--full`` takes all of them on all.
"""

from __future__ import annotations

import pytest
from conformance import Kernel
from emulator.driver import Driver
from emulator.kernels import parametrize, run_kernel

TARGETS = {
    "gfx90a": 64, "gfx942": 64, "gfx1100": 32, "gfx1201": 32, "gfx1201,wave64": 64,
    "gfx9-4-generic": 64, "gfx11-generic": 32, "gfx12-generic": 32,
}  # fmt: skip
GENERIC = {"gfx9-4-generic": "gfx942", "gfx11-generic": "gfx1100", "gfx12-generic": "gfx1201"}
"""Targets of many chips, and the one of these that they run on."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, TARGETS)


def test_kernel(driver: Driver, chip: str, kernel: Kernel) -> None:
    name = chip.split(",")[0]
    with driver.chip(GENERIC.get(name, name)):
        run_kernel(kernel, chip, TARGETS[chip])
