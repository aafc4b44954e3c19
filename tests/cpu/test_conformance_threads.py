"""The kernels of tests/conformance and the runtime under the thread sanitizer; ``--full`` runs all in each way."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from conformance import Answer, Launch, Theme, all_themes
from conformance.replay import build_image, replay
from conformance.replay import program as replay_program

SHORT = ("barriers", "atomics")
WAYS = ("host", "host,coroutines", "host,warp=64")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replay_program(tmp_path_factory)


def test_no_race(program: Path, tmp_path: Path, full: bool) -> None:
    for theme in all_themes():
        for way in WAYS:
            if not full and (theme.name not in SHORT or way != "host"):
                continue
            image = build_image(theme, way, tmp_path)
            warp = 64 if "warp=64" in way else 32
            launches = [
                (kernel.name, launch, answer)
                for kernel in theme.kernels
                for launch, answer in kernel.launches(warp, count=4 if full else 1)
            ]
            replay(program, image, launches)


RACE = """  // Long enough that other threads come to help.
  gpu.func @race(%out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rounds = arith.constant 100000 : index
    %factor = arith.constant 1664525 : i32
    %v = memref.load %out[%c0] : memref<?xi32>
    %w = scf.for %i = %c0 to %rounds step %c1 iter_args(%a = %v) -> i32 {
      %b = arith.muli %a, %factor : i32
      %ii = arith.index_cast %i : index to i32
      %c = arith.xori %b, %ii : i32
      scf.yield %c : i32
    }
    memref.store %w, %out[%c0] : memref<?xi32>
    gpu.return
  }
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor runs all blocks on one thread")
def test_a_race_is_found(program: Path, tmp_path: Path) -> None:
    """Between blocks, in the kernel's own code."""
    image = build_image(Theme("race", text=RACE), "host", tmp_path)
    launch = Launch((200, 1, 1), (1, 1, 1), 32, np.random.default_rng(0))
    with pytest.raises(AssertionError, match="data race"):
        replay(program, image, [("race", launch, Answer([np.zeros(1, np.int32)], [None]))] * 5)
