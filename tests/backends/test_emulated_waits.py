"""Functions of several kernels that wait once for them, on emulated devices of both vendors."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import PROGRAMS
from emulator.running import running_on
from test_wait_once import CALLS, numbers


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80", "sm_90"])
def test_functions_of_several_kernels(chip: str) -> None:
    with running_on(chip, PROGRAMS / "wait_once.mlir") as there:
        for name, (call, expected) in CALLS.items():
            for n in (0, 1, 65):
                x = numbers(n)
                call(there, x)
                np.testing.assert_array_equal(x, expected(numbers(n)), err_msg=f"{name} of {n}")
