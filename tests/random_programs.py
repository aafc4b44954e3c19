"""Random asynchronous host programs against what they must compute, under many orders of execution.

``python tests/random_programs.py --count 20000 --seed 0`` runs that many programs on the CPU, each with work done at
once and under several seeds of the schedule of OFFLOAD_HOST_SCHEDULE; prints the first program that goes wrong and ends
with 1. ``--synchronous`` writes programs without tokens and runs them also after mlir's gpu-async-region. The same
seeds give the same programs; processes can divide the work by ``--seed``."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from randomized import kernels
from randomized.flow import Program, generate, module
from randomized.generator import Options

import offload
from offload.runtime import Library, abi


class Wrong(Exception):
    """A program gave another result than its model, or left something behind."""


@dataclass(frozen=True)
class Batch:
    """Programs of one module, compiled for the CPU."""

    programs: Sequence[Program]
    text: str
    library: Library

    def schedule(self, seed: int) -> None:
        """Work is put off and ordered by this seed from now on; 0: it is done at once."""
        self.library._native.api.mgpuHostSchedule(seed)

    def count(self, what: int) -> int:
        return int(self.library._native.api.mgpuCount(what))

    def alive(self) -> tuple[int, int, int]:
        """Streams and events that nobody gave back, and allocations."""
        return self.count(abi.COUNT_STREAMS), self.count(abi.COUNT_EVENTS), self.count(abi.COUNT_ALLOCATIONS)

    def run(self, program: Program, arguments: list[Any]) -> list[Any]:
        """The host arrays after the call; the arguments stay as they are."""
        arrays = [argument.copy() for argument in arguments[: len(program.hosts)]]
        self.library.functions[program.name](*arrays, *arguments[len(arrays) :])
        return arrays

    def differs(self, program: Program, arguments: list[Any], expected: list[Any]) -> str:
        """What a run gives that it should not; empty where all is right."""
        for i, (found, wanted) in enumerate(zip(self.run(program, arguments), expected, strict=True)):
            if not np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f"):
                return f"%h{i} is {found.tolist()}, not {wanted.tolist()}"
        return ""

    def check(self, program: Program, arguments: list[Any], seeds: Sequence[int]) -> None:
        """Raises `Wrong` where a schedule gives another result or leaves streams, events or memory behind."""
        expected = program.expect(arguments)
        for seed in (0, *seeds):
            self.schedule(seed)
            before = self.alive()
            problem = self.differs(program, arguments, expected)
            after = self.alive()
            if not problem and after != before:
                problem = f"streams, events and allocations alive were {before} and are {after}"
            if problem:
                self.schedule(0)
                raise Wrong(f"schedule {seed}, arguments {arguments[len(expected) :]}: {problem}")
        self.schedule(0)
        if self.count(abi.COUNT_QUEUED):
            raise Wrong("work was left in the queues")
        if self.count(abi.COUNT_LATE_WRITES):
            raise Wrong("freed memory was written to")


def compiled(programs: Sequence[Program], kinds: Sequence[str] = tuple(kernels.TYPES), opt: int = 0) -> Batch:
    return loaded(programs, module(programs, kinds), opt)


def loaded(programs: Sequence[Program], text: str, opt: int = 0) -> Batch:
    library = offload.compile(text, targets=["host"], opt=opt)
    library.use("host")
    batch = Batch(programs, text, library)
    # The first call of a thread makes that thread's own stream, which stays.
    batch.library._native.api.mgpuStreamSynchronize(None)
    batch.library._native.check()
    return batch


def async_region(text: str) -> str:
    """The module after mlir's own pass that gives synchronous programs tokens."""
    pipeline = "builtin.module(func.func(gpu-async-region))"
    done = subprocess.run(
        ["mlir-opt-22", f"--pass-pipeline={pipeline}"], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Wrong(f"gpu-async-region fails: {done.stderr[:2000]}")
    return done.stdout


def without_one(seed: int, options: Options) -> Program:
    """The program of a seed without one of the dependencies that it needs."""
    stated = generate(seed, options).stated
    return generate(seed, replace(options, drop=seed % max(stated, 1)))


def batches(given: argparse.Namespace) -> Iterator[Batch]:
    seeds = range(given.seed, given.seed + given.count)
    for first in range(0, len(seeds), given.batch):
        some = seeds[first : first + given.batch]
        kinds = random.Random(some[0]).sample(list(kernels.TYPES), 2)
        kinds = list(dict.fromkeys([*kinds, "i32"]))
        options = Options(kinds, given.synchronous, given.operations)
        programs = [without_one(seed, options) if given.leave_out else generate(seed, options) for seed in some]
        text = module(programs, kinds)
        yield loaded(programs, text)
        if given.synchronous:
            yield loaded(programs, async_region(text))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the first program's seed")
    parser.add_argument("--schedules", type=int, default=3, help="schedules of each program")
    parser.add_argument("--batch", type=int, default=100, help="programs per module")
    parser.add_argument("--operations", type=int, default=20, help="operations of a program, about")
    parser.add_argument("--leave-out", action="store_true", help="leave a dependency out of each; something must fail")
    parser.add_argument("--synchronous", action="store_true", help="programs without tokens, and gpu-async-region")
    given = parser.parse_args(arguments)
    os.environ["OFFLOAD_CACHE_DIR"] = ""
    start, runs = time.monotonic(), 0
    for batch in batches(given):
        for program in batch.programs:
            seed = int(program.name[1:])
            try:
                schedules = [1 + seed * given.schedules + i for i in range(given.schedules)]
                batch.check(program, program.arguments(seed), schedules)
            except (Wrong, offload.OffloadError) as error:
                print(f"{program.text}\n\nprogram {seed}: {error}", file=sys.stderr)
                return 1
            runs += 1 + given.schedules
    print(f"{given.count} programs, {runs} runs, {time.monotonic() - start:.0f} s: all as the model says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
