"""Random kernels in every way in which the CPU can run them, against a model; ``--full`` takes many more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import on_host
from conformance import Kernel, Theme, judge
from conformance.randomized import answer, kernel, programs
from test_conformance import WAYS, copied

KERNELS = 12  # of a program
BLOCKS = ((1, 1, 1), (7, 1, 1), (33, 1, 1), (64, 1, 1), (8, 4, 3), (97, 2, 1))


@pytest.mark.parametrize("way", WAYS)
def test_random_kernels(way: str, full: bool) -> None:
    for seed in range(40 if full else 2):
        bodies = dict(programs(seed, KERNELS))
        source = Theme("random", text="".join(kernel(name, body) for name, body in bodies.items())).source
        library = on_host(source, opt=0 if "O=0" in way else 3, target=way)
        for name, body in bodies.items():

            def expected(launch: Any, body: Any = body) -> Any:
                return answer(body, launch)

            case = Kernel(f"random{seed}", name, expected, BLOCKS, ((1, 1, 1), (2, 1, 1)))
            for launch, wanted in case.launches(64 if "warp=64" in way else 32, count=3):
                given, arrays = copied(wanted.arguments)
                library.kernels[name][launch.grid, launch.block](*given)
                try:
                    judge(arrays, wanted)
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}, {name}, {launch}:\n{kernel(name, body)}\n{error}") from None


def test_models_disagree_with_wrong_kernels() -> None:
    """A kernel judged by another one's model fails: the comparison compares."""
    (_, one), (_, other) = list(programs(3, 2))
    launch = next(Kernel("random", "k", lambda launch: answer(one, launch), BLOCKS, ((1, 1, 1),)).launches(32, 1))[0]
    first, second = (
        answer(body, type(launch)(launch.grid, launch.block, 32, np.random.default_rng(0))) for body in (one, other)
    )
    with pytest.raises(AssertionError):
        judge([first.expected[0]], second)
