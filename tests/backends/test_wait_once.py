"""Functions of several kernels wait once for them: numbers on the CPU, whose streams run work as late as they may, and
waits that stand-in drivers count, where failures leave nothing running."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, HERE, PROGRAMS, emit_text, on_host, program

import offload

PROGRAM = PROGRAMS / "wait_once.mlir"
SIZES = (1, 2, 63, 64, 65, 200)
SEEDS = (0, 1, 2, 3, 7, 11)

Numbers = Any


def numbers(n: int) -> Numbers:
    return np.arange(n, dtype=np.int32) + 1


@pytest.fixture(params=SEEDS)
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The program on the CPU; but with seed 0, a wait that is missing shows in the numbers."""
    made = program("wait_once")
    made._native.api.mgpuHostSchedule(request.param)
    yield made
    late = made._native.api.mgpuCount(offload.runtime.abi.COUNT_LATE_WRITES) if request.param else 0
    made._native.api.mgpuHostSchedule(0)
    assert not late


def looked(x: Numbers, below: int) -> int:
    seen = 3
    while seen < below:
        seen = (seen + 3) * 3
    return seen


CALLS: dict[str, tuple[Callable[[Any, Numbers], object], Callable[[Numbers], Numbers]]] = {
    "one": (lambda lib, x: lib.one(x), lambda x: x + 3),
    "two": (lambda lib, x: lib.two(x), lambda x: (x + 3) * 3),
    "either": (lambda lib, x: lib.either(x, True), lambda x: (x + 3) * 15),
    "or": (lambda lib, x: lib.either(x, False), lambda x: (x + 8) * 5),
    "perhaps": (lambda lib, x: lib.perhaps(x, True), lambda x: (x + 3) * 3),
    "perhaps not": (lambda lib, x: lib.perhaps(x, False), lambda x: x + 3),
    "loop of 0": (lambda lib, x: lib.loop(x, 0), lambda x: x),
    "loop of 1": (lambda lib, x: lib.loop(x, 1), lambda x: (x + 3) * 3),
    "loop of 3": (lambda lib, x: lib.loop(x, 3), lambda x: (((x + 3) * 3 + 3) * 3 + 3) * 3),
    "memory": (lambda lib, x: lib.memory(x), lambda x: (x + 6) * 9),
    "temporary": (lambda lib, x: lib.temporary(x, True), lambda x: x * 3),
    "no temporary": (lambda lib, x: lib.temporary(x, False), lambda x: x),
    "calls": (lambda lib, x: lib.calls(x), lambda x: (((x + 3) * 3 + 3) * 3 + 3) * 3),
    "early": (lambda lib, x: lib.early(x, True), lambda x: (x + 3) * 3),
    "late": (lambda lib, x: lib.early(x, False), lambda x: ((x + 3) * 3 + 3) * 3),
    "checked": (lambda lib, x: lib.checked(x, True), lambda x: (x + 3) * 3),
    "devices": (lambda lib, x: lib.on_device(x), lambda x: ((x + 3) * 3 + 3) * 3),
}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CALLS)
def test_kernels_come_one_after_the_other(library: Any, name: str, n: int) -> None:
    call, expected = CALLS[name]
    x = numbers(n)
    call(library, x)
    np.testing.assert_array_equal(x, expected(numbers(n)))


def test_nothing_is_done_of_nothing(library: Any) -> None:
    for call, _ in CALLS.values():
        call(library, numbers(0))


@pytest.mark.parametrize("n", SIZES)
def test_the_host_sees_what_kernels_wrote(library: Any, n: int) -> None:
    x, y = numbers(n), np.zeros(n, np.int32)
    assert library.load(x) == (5 + 3) * 3
    np.testing.assert_array_equal(x, numbers(n) + 3)
    library.store(x)
    assert x[0] == 5 + 3
    library.transfers(x, y)
    np.testing.assert_array_equal(x, np.full(n, (5 + 3) * 3))
    x = numbers(n)
    library.transfers(x, y)
    np.testing.assert_array_equal(y, (numbers(n) + 3) * 3)
    x, y = numbers(n), np.zeros(n, np.int32)
    library.tokens(x, y)
    np.testing.assert_array_equal(y, ((((numbers(n) + 3) * 3 + 3) * 3) + 3) * 3)
    for below in (0, 4, 100, 5000):
        assert library.looking_loop(x, below) == looked(x, below)


def test_a_failed_assertion_leaves_nothing_running(library: Any) -> None:
    for n in SIZES:
        x = numbers(n)
        with pytest.raises(offload.DeviceError, match=r"wait_once\.mlir:\d+: assertion failed: it is right\."):
            library.checked(x, False)
        np.testing.assert_array_equal(x, numbers(n) + 3)
        assert library._native.api.mgpuCount(offload.runtime.abi.COUNT_QUEUED) == 0


def test_a_program_cannot_leave_out_a_wait() -> None:
    """The mark of the pass means nothing where the program has it."""
    marked = PROGRAM.read_text().replace("%v3 : i32)\n", "%v3 : i32) {offload.waits_later}\n")
    made = on_host(marked)
    for seed in SEEDS:
        made._native.api.mgpuHostSchedule(seed)
        x = numbers(10)
        made.two(x)
        made._native.api.mgpuHostSchedule(0)
        np.testing.assert_array_equal(x, (numbers(10) + 3) * 3)


def test_assembly_looks() -> None:
    """LLVM takes it for what reads memory, also where MLIR knows of no effect."""
    look = """
func.func @look(%x: memref<?xi32>) -> i32 {
  %c1 = arith.constant 1 : index
  %v3 = arith.constant 3 : i32
  gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xi32>, %v3 : i32)
  %seen = llvm.inline_asm "", "=r,~{memory}" : () -> i32
  gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xi32>, %v3 : i32)
  return %seen : i32
}
"""
    program = PROGRAM.read_text().rpartition("}")[0] + look + "}\n"
    text = emit_text(program, "host-llvm").partition("i32 @look(")[2].partition("\n}\n")[0]
    assert len(re.findall(r"call void @mgpuKernelLaunch\(.*, i32 1\)", text)) == 2


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_several_kernels(name: str) -> None:
    """On devices, too: see device/groups/host_programs.py."""
    call, expected = CALLS[name]
    for n in (1, 65):
        x = numbers(n)
        call(program("wait_once"), x)
        np.testing.assert_array_equal(x, expected(numbers(n)))


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wait_once")
    return offload.build(PROGRAM, folder / "wait_once.so", targets=ALL_TARGETS)


ASKED = {
    "one": "add sync",
    "two": "add times sync",
    "either": "add times times sync",
    "or": "add add times sync",
    "perhaps": "add times sync",
    "perhaps not": "add sync",
    "loop of 0": "",
    "loop of 3": "add times add times add times sync",
    "load": "sync add times sync times add sync sync",
    "store": "sync copy add sync sync",
    "transfers": "add times sync sync add times sync sync add times sync",
    "memory": "add copy add copy times copy times sync",
    "temporary": "copy times copy sync",
    "no temporary": "sync",
    "tokens": "add times sync copy wait add sync times sync sync add times sync",
    "early": "add times sync",
    "late": "add times add times sync",
    "checked": "add times sync",
    "devices": "add times sync add times sync",
    "calls": "add times sync add times sync add times sync",
    "on a stream": "add times sync",
    "empty": "sync",
}


GONE = "; the driver may refuse all further work of this process."
CAUSED = "Work that was put on the device earlier caused it; the "


@pytest.fixture(scope="module", params=["cuda", "hip"])
def asked(
    request: pytest.FixtureRequest, drivers: Path, artifact: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[str]], dict[str, list[Any]]]:
    """What standin/waits.py prints."""
    copy = shutil.copy(artifact, tmp_path_factory.mktemp("copy") / "copy.so")
    done = subprocess.run(
        [sys.executable, HERE / "standin" / "waits.py", artifact, copy, drivers / "kernels.so", request.param],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    seen, failures = json.loads(done.stdout)
    return seen, failures


def test_what_a_driver_is_asked(asked: tuple[dict[str, list[str]], Any]) -> None:
    assert {name: " ".join(words) for name, words in asked[0].items()} == ASKED


def test_what_failures_say_and_leave(asked: tuple[Any, dict[str, list[Any]]]) -> None:
    """Where a function ends early, it has waited for what it had launched; a kernel that fails is told first."""
    failures = asked[1]
    said, words = failures["assertion"]
    assert said.endswith("assertion failed: it is right.")
    assert words == ["add", "sync"]
    said, words = failures["second launch"]
    assert said.startswith('The launch of the kernel "times" with grid')
    assert words == ["add", "sync"]
    said, words = failures["kernel"]
    assert said.endswith(f'{CAUSED}kernels launched since the last wait are "add", "times"{GONE}')
    assert words == ["add", "times"]
    said, _ = failures["kernel of several"]
    assert said.endswith(f'{CAUSED}kernels launched since the last wait are "add", "copy", "times"{GONE}')
    said, words = failures["kernel told by a launch"]
    assert said.startswith('The launch of the kernel "times" with grid')
    assert said.endswith(f'{CAUSED}kernel launched last there is "add"{GONE}')
    assert words == ["add", "sync"]
    for name in ("kernel before an assertion", "kernel alone"):
        said, words = failures[name]
        assert "StreamSynchronize on" in said
        assert said.endswith(f'{CAUSED}kernel launched last there is "add"{GONE}')
        assert words == ["add"]
    said, words = failures["no memory"]
    assert "OUT_OF_MEMORY" in said.upper() or "OutOfMemory" in said
    assert words[-1] == "sync"
    # What has been freed behind kernels may be there only when these have ended.
    assert " ".join(failures["memory behind a wait"][0]) == "add copy add sync copy times copy times sync"
    assert failures["afterwards"] == [["add", "times", "sync"]]
