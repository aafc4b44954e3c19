"""Random host programs with tokens, streams and device memory: they compute what their model says and leave nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from emulator.on_device import OnDevice
from randomized.flow import Program as Random
from randomized.flow import generate, module
from randomized.generator import Options

from device.checks import Check, Program
from offload.runtime import Library, abi

MODULES, PER_MODULE, CALLS = 8, 25, 4
ALIVE = (abi.COUNT_STREAMS, abi.COUNT_EVENTS, abi.COUNT_ALLOCATIONS)


def alive(library: Library) -> list[int]:
    """Streams and events that nobody gave back, and allocations."""
    return [int(library._native.api.mgpuCount(what)) for what in ALIVE]


def called(library: Library, program: Random, arguments: list[Any]) -> None:
    """Calls a program and compares its arrays with the model's."""
    count = len(program.hosts)
    arrays = [array.copy() for array in arguments[:count]]
    getattr(OnDevice(library), program.name)(*arrays, *arguments[count:])
    for i, (found, wanted) in enumerate(zip(arrays, program.expect(arguments), strict=True)):
        np.testing.assert_array_equal(found, wanted, err_msg=f"%h{i} of\n{program.text}")


def running(programs: list[Random]) -> Callable[[Library], None]:
    def run(library: Library) -> None:
        library._native.api.mgpuStreamSynchronize(None)  # makes the thread's own stream, which stays
        library._native.check()
        before = alive(library)
        for program in programs:
            for turn in range(CALLS):
                called(library, program, program.arguments(int(program.name[1:]) + turn))
        assert alive(library) == before, f"{before} streams, events and allocations became {alive(library)}"

    return run


def checks() -> Iterator[Check]:
    for synchronous in (False, True):
        kind = "without tokens" if synchronous else "with tokens"
        for number in range(MODULES // (2 if synchronous else 1)):
            first = 5000 * synchronous + number * PER_MODULE
            programs = [generate(seed, Options(synchronous=synchronous)) for seed in range(first, first + PER_MODULE)]
            text = module(programs)
            yield Check("async", f"{kind}, {first}", [Program(text, options={"opt": 0})], running(programs))
