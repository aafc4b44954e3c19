"""The kernels of tests/conformance, and random ones, against NumPy: blocks and grids of odd sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from conformance import Kernel, Theme, all_themes, judge
from conformance.randomized import answer, kernel, programs
from emulator.on_device import OnDevice

from device.checks import Check, Program
from offload.runtime import Library

LAUNCHES = 6
SEEDS = 10
KERNELS = 12  # of a random program
BLOCKS = ((1, 1, 1), (7, 1, 1), (33, 1, 1), (64, 1, 1), (8, 4, 3), (97, 2, 1))


def running(case: Kernel) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        kernels = OnDevice(library).kernels
        for launch, wanted in case.launches(32, LAUNCHES):
            given = [value.copy() if isinstance(value, np.ndarray) else value for value in wanted.arguments]
            kernels[case.name][launch.grid, launch.block, None, wanted.shared](*given)
            judge([value for value in given if isinstance(value, np.ndarray)], wanted)

    return run


def random_kernels(seed: int) -> tuple[str, list[Kernel]]:
    """A program of random kernels, and these with their models."""
    bodies = dict(programs(seed, KERNELS))
    source = Theme("random", text="".join(kernel(name, body) for name, body in bodies.items())).source

    def modelled(body: Any) -> Callable[[Any], Any]:
        return lambda launch: answer(body, launch)

    cases = [
        Kernel(f"random{seed}", name, modelled(body), BLOCKS, ((1, 1, 1), (2, 1, 1))) for name, body in bodies.items()
    ]
    return source, cases


def checks() -> Iterator[Check]:
    for theme in all_themes():
        for case in theme.kernels:
            if not case.cpu_only:
                yield Check("conformance", f"{theme.name}.{case.name}", [Program(theme.source)], running(case))
    for seed in range(SEEDS):
        source, cases = random_kernels(seed)
        for case in cases:
            yield Check("random kernels", f"{seed}, {case.name}", [Program(source)], running(case))
