"""Random kernels on integers of odd widths, scalars and vectors: on the CPU and on emulated GPUs against Python's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiling import emit, on_host
from randomized.integers import Kernel, generate, inputs
from randomized.modules import check_emulated, module


def check(kernels: Sequence[Kernel], library: object) -> None:
    for kernel in kernels:
        arrays = inputs(int(kernel.name[1:]))
        expected = kernel.expected(arrays)
        out = np.zeros_like(expected)
        library.kernels[kernel.name][1, len(out) // kernel.lanes](*arrays, out)
        np.testing.assert_array_equal(out, expected, kernel.text)


@pytest.mark.parametrize("target", ["host", "host,O=0"])
@pytest.mark.parametrize("first", [0, 12, 24])
def test_on_the_cpu(target: str, first: int) -> None:
    kernels = [generate(seed) for seed in range(first, first + 12)]
    check(kernels, on_host(module(kernels), target=target))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100,O=0", "sm_90", "sm_75,O=0"])
def test_on_emulated_gpus(target: str) -> None:
    kernels = [generate(seed) for seed in range(100, 104)]
    check_emulated(kernels, target, check)


@pytest.mark.parametrize("target", ["host,O=0", "gfx942,O=0", "sm_80,O=0"])
@pytest.mark.parametrize("seed", [7074, 7321])
def test_products_of_bits(target: str, seed: int) -> None:
    """Without optimization LLVM takes -1 for the upper bit."""
    kernels = [generate(seed)]
    if target.startswith("host"):
        check(kernels, on_host(module(kernels), target=target))
    else:
        check_emulated(kernels, target, check)


def test_machine_code_of_nvidia_s() -> None:
    assert emit(module([generate(seed) for seed in range(200, 206)]), "object", ["nvvm:sm_80"])


def test_they_have_what_they_should() -> None:
    text = module([generate(seed) for seed in range(36)])
    for part in ("i1 ", "i7 ", "i100 ", "i128 ", "vector<8xi", "divsi", "floordivsi", "mulsi_extended", "math.ctlz"):
        assert part in text, part
