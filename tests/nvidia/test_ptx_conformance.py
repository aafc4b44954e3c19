"""The kernels of tests/conformance executed as PTX on the CPU (tests/ptx), against NumPy.

Every run takes each kernel on another chip; ``--full`` takes all of them on all.
"""

from __future__ import annotations

import pytest
from conformance import Kernel
from emulator.driver import Driver
from emulator.kernels import parametrize, run_kernel

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_90,O=0")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, CHIPS)


def test_kernel(cuda: Driver, chip: str, kernel: Kernel) -> None:
    with cuda.chip(chip.split(",")[0]):
        run_kernel(kernel, chip, 32)
