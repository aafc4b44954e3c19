"""Random chains of linalg operations on the same rows, of which some are one kernel, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.running import running_on
from randomized.row_steps import Program, generate


def module(programs: list[Program]) -> str:
    return "".join(program.text for program in programs)


def check(program: Program, function: Any) -> None:
    arrays = program.arrays()
    function(*arrays)
    for name, found, wanted in zip("xyzstg", arrays, program.expected(), strict=True):
        np.testing.assert_array_equal(found, wanted, f"{name} of\n{program.text}")


@pytest.mark.parametrize("start", [0, 20])
def test_on_the_cpu(start: int) -> None:
    programs = [generate(seed) for seed in range(start, start + 20)]
    library = on_host(module(programs))
    for program in programs:
        check(program, library.functions[program.name])


@pytest.mark.parametrize("chip", ["gfx1100", "sm_86"])
def test_on_an_emulated_gpu(chip: str) -> None:
    """Memory of two arguments may be shared there, too."""
    programs = [program for program in map(generate, range(100, 130)) if program.length < 2000]
    with running_on(chip, module(programs)) as library:
        for program in programs:
            arrays = program.arrays()
            there = {id(array): library.device.array(array) for array in arrays}
            getattr(library, program.name)(*(there[id(array)] for array in arrays))
            for name, array, wanted in zip("xyzstg", arrays, program.expected(), strict=True):
                np.testing.assert_array_equal(there[id(array)].numpy(), wanted, f"{name} of\n{program.text}")


def test_some_are_one_kernel() -> None:
    """Of what takes a kernel each where the steps are apart."""
    programs = [program for program in map(generate, range(60)) if "?" not in program.text and program.length >= 64]
    text = emit_text(module(programs), "kernels")
    steps = sum(program.text.count("linalg.") + program.text.count("memref.copy") for program in programs)
    assert 0 < text.count("gpu.launch_func") < 0.7 * steps
