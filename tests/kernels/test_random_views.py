"""Random chains of views: in kernels, in host code that kernels are made of, and in copies, against NumPy's views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import emit, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated
from randomized.views import Program, generate

WAYS = ("kernel", "function", "copies")


def module(programs: list[Program], way: str) -> str:
    text = "".join(getattr(program, way) for program in programs)
    return f"gpu.module @m {{\n{text}}}\n" if way == "kernel" else text


def check(program: Program, call: Any) -> None:
    x, out = program.arrays()
    call(x, out, *program.arguments)
    for found, wanted in zip((x, out), program.expected(), strict=True):
        np.testing.assert_array_equal(found, wanted, program.kernel)


@pytest.mark.parametrize("target", ["host", "host,O=0"])
@pytest.mark.parametrize("way", WAYS)
def test_on_the_cpu(way: str, target: str) -> None:
    programs = [generate(seed) for seed in range(40)]
    library = on_host(module(programs, way), target=target)
    for program in programs:
        check(program, library.kernels[program.name][1, 1] if way == "kernel" else library.functions[program.name])


@pytest.mark.parametrize("chip", ["gfx1100", "sm_86"])
@pytest.mark.parametrize("way", WAYS)
def test_on_an_emulated_gpu(way: str, chip: str) -> None:
    """Arrays are staged: that a view of one goes to a kernel has to be seen."""
    programs = [generate(seed) for seed in range(100, 125)]
    driver = shared(emulated(chip)[1])
    with driver.chip(chip):
        library = compiled(module(programs, way), chip)
        library.auto_stage = True
        for program in programs:
            name = program.name
            check(program, OnDevice(library).kernels[name][1, 1] if way == "kernel" else library.functions[name])
    driver.check()


@pytest.mark.parametrize("way", ["kernel", "function"])
def test_machine_code_of_nvidia_s(way: str) -> None:
    assert emit(module([generate(seed) for seed in range(200, 215)], way), "object", ["nvvm:sm_80"])


@pytest.mark.parametrize("way", WAYS)
def test_any_seed_is_a_program(way: str) -> None:
    assert emit(module([generate(seed) for seed in range(1000, 1400)], way), "input")


def test_they_have_what_they_should() -> None:
    text = module([generate(seed) for seed in range(40)], "kernel")
    for part in ("subview", "transpose", "memref.cast", "expand_shape", "collapse_shape", "reinterpret_cast"):
        assert text.count(part) >= 5, part
