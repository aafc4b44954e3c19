"""Random kernels whose threads exchange values, in branches and loops, on the CPU and emulated GPUs against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiling import on_host
from randomized.blocks import Kernel, generate
from randomized.modules import check_emulated, module

BLOCKS = 3


def check(kernels: Sequence[Kernel], library: Any) -> None:
    for number, kernel in enumerate(kernels):
        chance = np.random.default_rng(number)
        limit = 2**31 if number % 2 else 20
        x, y = (chance.integers(-limit, limit, BLOCKS * kernel.threads).astype(np.int32) for _ in range(2))
        for u in (0, 5, 14):
            out = np.zeros_like(x)
            library.kernels[kernel.name][BLOCKS, kernel.block](u, x, y, out)
            np.testing.assert_array_equal(out, kernel.expected(u, x, y), kernel.text)


@pytest.mark.parametrize(("target", "first", "count"), [("host", 0, 8), ("host:x86-64-v3", 8, 4), ("host,O=0", 0, 24)])
def test_on_the_cpu(target: str, first: int, count: int) -> None:
    kernels = [generate(seed) for seed in range(first, first + count)]
    check(kernels, on_host(module(kernels), target=target))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942,O=0", "gfx1100", "gfx1201,O=0", "sm_75", "sm_90"])
def test_on_emulated_gpus(target: str) -> None:
    lanes = 64 if target.startswith("gfx9") else 32
    check_emulated([generate(seed, lanes) for seed in range(100, 106)], target, check)


def test_they_have_what_they_should() -> None:
    text = module([generate(seed) for seed in range(24)])
    for part in ("gpu.shuffle", "all_reduce", "subgroup_reduce", "atomic_rmw", "scf.while", "private(", "call @"):
        assert part in text, part
