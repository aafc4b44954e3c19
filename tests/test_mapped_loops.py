"""scf.forall whose loops their author maps to blocks and threads, for the CPU and on emulated devices."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit_text, on_host
from emulator.driver import shared
from emulator.on_device import OnDevice, compiled, emulated

import offload

PROGRAM = PROGRAMS / "mapped_loops.mlir"

_random = np.random.default_rng(8)
X = _random.standard_normal((19, 13)).astype(np.float32)
ROWS = _random.standard_normal((5, 16)).astype(np.float32)
A, B = _random.standard_normal((12, 32)).astype(np.float32), _random.standard_normal((32, 48)).astype(np.float32)


def check(library: offload.Library | OnDevice) -> None:
    turned = np.zeros((13, 19), np.float32)
    library.transposed(X, turned)
    np.testing.assert_array_equal(turned, X.T)
    shares, sums = np.zeros_like(ROWS), np.zeros(5, np.float32)
    library.shares(ROWS, shares, sums)
    powers = np.exp(ROWS)
    np.testing.assert_allclose(sums, powers.sum(1), rtol=1e-5)
    np.testing.assert_allclose(shares, powers / powers.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(library.product(A, B).numpy(), A @ B, rtol=1e-4, atol=1e-5)


def test_on_the_cpu() -> None:
    check(on_host(PROGRAM))


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100", "sm_80"])
def test_on_devices(chip: str) -> None:
    driver = shared(emulated(chip)[1])
    with driver.chip(chip):
        check(OnDevice(compiled(PROGRAM, chip)))
    driver.check()


def test_for_each_target() -> None:
    offload.compile(PROGRAM, targets=ALL_TARGETS)


def test_blocks_and_threads_are_the_authors() -> None:
    text = emit_text(PROGRAM, "kernels")
    assert text.count("gpu.launch_func") == 3
    assert text.count("known_block_size = array<i32: 8, 8, 1>") == 1
    assert text.count("known_block_size = array<i32: 16, 1, 1>") == 1
    assert text.count("known_block_size = array<i32: 16, 4, 1>") == 1
