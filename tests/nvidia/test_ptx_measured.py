"""The kernels that are measured on NVIDIA's GPUs, run as PTX on the CPU first (tests/ptx)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from compiling import ROOT
from device.checks import Program
from device.store import Store
from emulator.driver import Driver
from emulator.on_device import compiled_program

from offload.runtime import Library

sys.path.append(str(ROOT / "bench"))
from hardware import ours, problems


@pytest.fixture(autouse=True)
def chip(cuda: Driver) -> Iterator[None]:
    with cuda.chip("sm_90"):
        yield


class Programs(Store):
    """Compiles what is asked for, where the device suite has it compiled beforehand."""

    def __init__(self) -> None:
        super().__init__(Path())

    def load(self, program: Program, backend: str) -> Library:
        return compiled_program(program)


@pytest.mark.parametrize("kernel", ours.KERNELS)
def test_kernels_that_are_measured(kernel: str) -> None:
    problem = getattr(problems, kernel)("small")
    run, outputs = ours.Ours(Programs(), "cuda").prepare(problem)
    run(1)
    found, tolerance = outputs(), problem.tolerance
    for name, wanted in problem.expected().items():
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("element", "shape"), [("f16", (256, 512, 64)), ("bf16", (128, 256, 576))])
def test_the_product_that_is_measured(element: str, shape: tuple[int, int, int]) -> None:
    """Two warpgroups that multiply and one that brings tiles; a ring of four stages, once around and more."""
    rows, columns, depth = shape
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    random = np.random.default_rng(3)
    a, b = (random.integers(-3, 4, size).astype(dtype) for size in ((rows, depth), (depth, columns)))
    run, out = ours.Ours(Programs(), "cuda").product(element, a, b)
    run(1)
    np.testing.assert_array_equal(out(), a.astype(np.float32) @ b.astype(np.float32))
