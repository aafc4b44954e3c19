"""bench/hardware's scan in one launch: its blocks wait for each other's sums, in whatever order they come to run."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from compiling import ROOT, on_host
from emulator.driver import shared

import offload

sys.path.append(str(ROOT / "bench"))
from hardware import ours
from hardware.problems import RUN

SOURCE = ours.kernel_program("scan").text
SUM, ALL = 1, 2
"""What the first launch's words say in their upper halves: a run's own sum is known, the sum up to its end is."""


def numbers(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(1 << 31), 1 << 31, count, dtype=np.int64).astype(np.int32)


def word(known: int, value: int) -> int:
    return known << 32 | value & 0xFFFFFFFF


@pytest.mark.parametrize("way", ["host", "host,coroutines", "host,warp=64", "host,O=0"])
@pytest.mark.parametrize("count", [4, RUN, RUN + 4, 40 * RUN - 8])
def test_launches_one_after_the_other(way: str, count: int) -> None:
    """With the states that the launch before left."""
    library = on_host(SOURCE, target=way)
    runs = -(-count // RUN)
    states = np.zeros(1 + runs, np.int64)
    for launch in range(3):
        x, out = numbers(count, launch), np.empty(count, np.int32)
        library.kernels.scan[runs, 256](x, out, states)
        np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.int32))
        assert states[0] == (launch + 1) * runs
        assert (states[1:] >> 32 == 2 * launch + ALL).all()


@pytest.mark.parametrize("known", [0, 1, 31, 32, 33, 63, 64, 69])
def test_looking_back_over_sums(known: int) -> None:
    """One block, which takes the last of 71 runs; of those before it, all after number ``known`` have said their own
    sum alone, and what is before that one is not to be counted again."""
    runs = 71
    x, out = numbers(runs * RUN), np.zeros(runs * RUN, np.int32)
    sums = x.reshape(runs, RUN).sum(axis=1, dtype=np.int32)
    states = np.zeros(1 + runs, np.int64)
    states[0] = runs - 1
    for run in range(runs - 1):
        all_of_them = int(sums[: run + 1].sum(dtype=np.int32))
        states[1 + run] = word(ALL, all_of_them) if run <= known else word(SUM, int(sums[run]))
    on_host(SOURCE).kernels.scan[1, 256](x, out, states)
    np.testing.assert_array_equal(out[-RUN:], np.cumsum(x, dtype=np.int32)[-RUN:])
    assert not out[:-RUN].any()
    assert states[-1] == word(ALL, int(out[-1]))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1100,wave64", "gfx1201"])
def test_as_machine_code_of_amd(target: str) -> None:
    """On the emulator of instructions; half a wave of 64 looks back."""
    count = 3 * RUN + 8
    with shared().chip(target.split(",")[0]):
        library = offload.compile(SOURCE, targets=[f"rocdl:{target}"])
        library.use("hip")
        states = library.device.zeros(5, "int64")
        for launch in range(2):
            x, out = numbers(count, launch), library.device.zeros(count, "int32")
            library.kernels.scan[4, 256](library.device.array(x), out, states)
            np.testing.assert_array_equal(out.numpy(), np.cumsum(x, dtype=np.int32))
