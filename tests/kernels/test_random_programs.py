"""Random host programs on the CPU: under every order of execution that a driver may choose they compute what their
model says, and nothing of theirs stays alive. `random_programs.py` runs many more from the command line."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import random_programs
from compiling import on_host
from random_programs import Batch, async_region, compiled, loaded, without_one
from randomized import kernels
from randomized.flow import generate, module
from randomized.generator import Options

from offload.runtime import abi

PER_MODULE = 25
SCHEDULES = [11, 12, 13, 14, 15]


@functools.cache
def asynchronous(first: int) -> Batch:
    return compiled([generate(seed) for seed in range(first, first + PER_MODULE)])


def check(batch: Batch) -> None:
    for program in batch.programs:
        for seed in (int(program.name[1:]), 1):
            batch.check(program, program.arguments(seed), SCHEDULES)


@pytest.mark.parametrize("first", range(0, 6 * PER_MODULE, PER_MODULE))
def test_asynchronous_programs(first: int) -> None:
    check(asynchronous(first))


def test_long_programs_with_optimization() -> None:
    options = Options(["i32", "f32"], operations=80)
    check(compiled([generate(seed, options) for seed in range(1000, 1010)], options.kinds, opt=3))


def test_synchronous_programs_as_they_are_and_through_gpu_async_region() -> None:
    options = Options(synchronous=True)
    programs = [generate(seed, options) for seed in range(2000, 2040)]
    text = module(programs)
    assert "async" not in text
    check(loaded(programs, text))
    changed = async_region(text)
    assert changed.count(" async ") > 100
    check(loaded(programs, changed))


def test_the_programs_use_what_they_should() -> None:
    text = "\n".join(program.text for program in asynchronous(0).programs)
    for part in (
        "gpu.wait async\n", "gpu.wait async [", "gpu.wait [", "gpu.alloc async", "gpu.alloc (", "host_shared",
        "gpu.memset async", "gpu.memset %", "gpu.memcpy async", "gpu.dealloc async", "gpu.launch_func async [",
        "gpu.launch_func [", "gpu.launch_func @", "scf.if", "scf.yield", "iter_args", "scf.while", "cf.cond_br",
        "func.call", "-> (!gpu.async.token", "arith.select", "memref.load", "memref.store",
    ):  # fmt: skip
        assert part in text, part
    for kind in kernels.TYPES:
        assert f"memref<?x{kind}>, {kind}" in text  # a fill


def test_a_thousand_iterations_leave_nothing_behind() -> None:
    batch = asynchronous(0)
    looping = [program for program in batch.programs if "%k0" in program.text.split("{", 1)[1].split("@f")[-1]]
    looping = [program for program in looping if " %k0 step" in program.text or "%k0 : index" in program.text]
    assert len(looping) >= 5
    for program in looping[:8]:
        batch.check(program, program.arguments(7, (1000, 1)), SCHEDULES[:2])


def test_many_calls_do_not_fill_the_pools() -> None:
    batch = asynchronous(0)

    def pooled() -> tuple[int, int]:
        return batch.count(abi.COUNT_POOLED_STREAMS), batch.count(abi.COUNT_POOLED_EVENTS)

    arguments = [(program, program.arguments(3)) for program in batch.programs]
    for program, given in arguments:
        batch.run(program, given)
    before = (*batch.alive(), *pooled())
    for _ in range(40):
        for program, given in arguments:
            batch.run(program, given)
    assert (*batch.alive(), *pooled()) == before
    assert before[1] == before[2] == 0


def test_threads_run_each_others_work() -> None:
    batch = asynchronous(25)
    cases = [
        (program, given, program.expect(given))
        for program in batch.programs
        for given in (program.arguments(seed) for seed in range(3))
    ]

    def run(turn: int) -> list[str]:
        order = np.random.default_rng(turn).permutation(len(cases))
        return [problem for i in order if (problem := batch.differs(*cases[i]))]

    for seed in SCHEDULES[:2]:
        batch.schedule(seed)
        with ThreadPoolExecutor(6) as pool:
            assert [problem for found in pool.map(run, range(12)) for problem in found] == []
        batch.schedule(0)
        assert batch.count(abi.COUNT_QUEUED) == batch.count(abi.COUNT_ALLOCATIONS) == 0
        assert batch.count(abi.COUNT_LATE_WRITES) == 0
    assert batch.count(abi.COUNT_EVENTS) == 0


# The tests can fail.


def noticed(batch: Batch, program: Any, given: list[Any], seeds: range) -> list[bool]:
    """For each seed, whether the results or a write to freed memory show that something is missing."""
    expected = program.expect(given)
    found = []
    for seed in seeds:
        batch.schedule(0)
        before = batch.count(abi.COUNT_LATE_WRITES)
        batch.schedule(seed)
        differs = bool(batch.differs(program, given, expected))
        batch.schedule(0)
        found.append(differs or batch.count(abi.COUNT_LATE_WRITES) > before)
    return found


def test_a_missing_dependency_is_noticed() -> None:
    """Where a dependency that an operation needs is left out. Not every one can show: it may stand where no call comes,
    or the value may be overwritten; but many must. What only a free could show does not: it comes behind all uses."""
    programs = [without_one(seed, Options()) for seed in range(60)]
    batch = compiled(programs)
    caught = 0
    for program in programs:
        given = program.arguments(int(program.name[1:]))
        assert noticed(batch, program, given, range(0, 1)) == [False], "work that is done at once hides it"
        caught += any(noticed(batch, program, given, range(1, 9)))
    assert caught >= 15


MISSING = """
  func.func @copied(%x: memref<?xi32>, %y: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %m, %t0 = gpu.alloc async (%n) : memref<?xi32>
    %t1 = gpu.memcpy async [%t0] %m, %x : memref<?xi32>, memref<?xi32>
    %t2 = gpu.memcpy async DEPENDENCY %y, %m : memref<?xi32>, memref<?xi32>
    gpu.wait [%t2]
    gpu.wait [%t1]
    gpu.dealloc %m : memref<?xi32>
    return
  }
"""


@pytest.mark.parametrize(("dependency", "most", "least"), [("[%t1]", 0, 0), ("", 40, 20)])
def test_most_seeds_show_a_missing_dependency(dependency: str, most: int, least: int) -> None:
    library = on_host(MISSING.replace("DEPENDENCY", dependency))
    x, wrong = np.arange(20, dtype=np.int32), 0
    for seed in range(40):
        library._native.api.mgpuHostSchedule(seed + 1)
        y = np.zeros_like(x)
        library.copied(x, y)
        wrong += not np.array_equal(x, y)
    library._native.api.mgpuHostSchedule(0)
    assert least <= wrong <= most


def test_the_command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", "")
    assert random_programs.main(["--count", "20", "--seed", "3000", "--batch", "10"]) == 0
    assert "20 programs, 80 runs" in capsys.readouterr().out
    assert random_programs.main(["--count", "20", "--seed", "3000", "--schedules", "8", "--leave-out"]) == 1
    message = capsys.readouterr().err
    assert "func.func @f30" in message
    assert "\nprogram 30" in message
