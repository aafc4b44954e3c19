"""Random kernels on vectors of any rank: on the CPU and on an emulated GPU against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiling import emit, on_host
from randomized.modules import check_emulated, module
from randomized.vectors import Kernel, generate


def check(kernels: Sequence[Kernel], library: Any) -> None:
    for kernel in kernels:
        arrays = [before.copy() for _, before, _ in kernel.memory]
        library.kernels[kernel.name][1, 1](*arrays, 0)
        for number, (found, (_, _, wanted)) in enumerate(zip(arrays, kernel.memory, strict=True)):
            np.testing.assert_array_equal(found, wanted, f"%m{number} of\n{kernel.text}")


@pytest.mark.parametrize("target", ["host", "host,O=0"])
@pytest.mark.parametrize("first", [0, 10, 20])
def test_on_the_cpu(target: str, first: int) -> None:
    kernels = [generate(seed) for seed in range(first, first + 10)]
    check(kernels, on_host(module(kernels), target=target))


def test_masks_of_three_dimensions_that_one_reduction_takes() -> None:
    """Written out dimension by dimension, in more rounds than MLIR goes by itself."""
    kernels = [generate(171)]
    check(kernels, on_host(module(kernels)))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201,O=0", "sm_100", "sm_80,O=0"])
def test_on_an_emulated_gpu(target: str) -> None:
    kernels = [generate(seed) for seed in range(100, 105)]
    check_emulated(kernels, target, check)


def test_machine_code_of_nvidia_s() -> None:
    assert emit(module([generate(seed) for seed in range(200, 205)]), "object", ["nvvm:sm_80"])


def test_they_have_what_they_should() -> None:
    text = module([generate(seed) for seed in range(30)])
    for part in ("transfer_read", "transfer_write", "vector.mask ", "scan", "contract", "gather", "expandload"):
        assert text.count(part) >= 3, part
