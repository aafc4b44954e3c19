"""Each call of a driver fails in turn: an error that names the call and the code, nothing left behind, and the next
call of the same function is right. Every example and a program with work of all kinds, on both stand-in drivers,
whose kernels the CPU runs.

What a process keeps as long as it lives (contexts, modules, pooled streams and events) is not left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiling import ALL_TARGETS, HERE, PROGRAMS

import offload

# What is asked for the devices: without an answer for the first the backend has none, until it is asked again; without
# one for a further one, the program goes on with those before it.
START = re.compile(
    "cuInit|cuDeviceGet|cuDeviceTotalMem|hipInit|hipGetDeviceCount|hipGetDeviceProp|hipDevice(Get|Total)"
)
# Attributes, in order: five on CUDA and two on HIP that are needed; then whether there are memory pools.
POOLS = {("cuDeviceGetAttribute", 6), ("hipDeviceGetAttribute", 3)}
# How much the driver keeps of freed memory: without an answer as much as it likes.
TUNING = re.compile(".*MemPool")
# Messages speak of these by what they do.
WORDS = {"LaunchKernel": "The launch of the kernel", "MemAlloc": "The allocation of", "Malloc": "The allocation of"}
# Without these nothing can be given back; what the driver was not told to free, it keeps.
# Memory of arrays is given back behind the work that used it, on another stream.
RELEASES = re.compile("cuCtx[GS]etCurrent|hip[GS]etDevice$|cuMemFree|hipFree|cuStreamWaitEvent|hipStreamWaitEvent")

# Program, device, whether the driver has memory pools.
CASES = [("async", 0, True), ("wait_once", 0, True), ("saxpy", 0, True), ("scale", 1, True), ("scale", 0, False)]
MORE = [("scale", 0, True), ("linear", 0, True), ("reduce", 0, True), ("transpose", 0, True), ("async", 1, False)]
MORE += [("wait_once", 1, False)]
PROGRAMS_TOO = ("async", "wait_once")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = CASES + MORE if metafunc.config.getoption("--full") else CASES
        metafunc.parametrize("case", cases, ids=lambda case: "-".join(map(str, case)))


@pytest.fixture(scope="module")
def artifacts(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The examples, and those of tests/programs."""
    folder = tmp_path_factory.mktemp("faults")
    return built | {
        name: offload.build(PROGRAMS / f"{name}.mlir", folder / f"{name}.so", targets=ALL_TARGETS)
        for name in PROGRAMS_TOO
    }


def inject(folder: Path, drivers: Path, artifact: Path, *words: str, **environment: str) -> dict[str, Any]:
    copy = shutil.copy(artifact, folder / "copy.so")  # another file is another library: see kernels.c
    done = subprocess.run(
        [sys.executable, HERE / "standin" / "faults.py", artifact, copy, drivers / "kernels.so", *words],
        env=os.environ | {"LD_LIBRARY_PATH": str(drivers)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def named(function: str, message: str) -> bool:
    words = next((said for part, said in WORDS.items() if part in function), function)
    return message.startswith("DeviceError: ") and words in message and "(999)" in message


def problem(found: dict[str, Any], usual: dict[str, Any]) -> str:
    """What is wrong with what came of one failure; nothing: the empty string."""
    function, turn, attempts = found["function"], found["turn"], found["attempts"]
    if len(attempts) < 3:
        return "a crash"
    quiet = (function, turn) in POOLS or TUNING.match(function)
    if found["last"]:
        return "the failure is left in the driver's thread"
    errors = [said for said in attempts if said != "right"]
    if quiet and errors:
        return "an error, but there is another way"
    if not quiet and (len(errors) != 1 or not named(function, errors[0])):
        return "not one error that names the call and the code"
    if attempts[2] != "right" or (attempts[1] != "right" and not RELEASES.match(function)):
        return "the next call is not right"
    left = found["live"]["memory"] - usual["live"]["memory"]
    if left > (1 if RELEASES.match(function) else 0) or found["live"]["modules"] > usual["live"]["modules"]:
        return "memory or modules are left"
    counts = found["counts"]
    for kind in ("streams", "events"):
        if found["live"][kind] != counts[kind] + counts[f"pooled {kind}"] or counts[kind] != usual["counts"][kind]:
            return f"{kind} are left"
    return "" if counts["allocations"] == 0 else "allocations are left"


@pytest.mark.parametrize("backend", ["cuda", "hip"])
def test_each_call_fails(
    artifacts: dict[str, Path], drivers: Path, full: bool, tmp_path: Path, case: tuple[str, int, bool], backend: str
) -> None:
    name, device, pools = case
    environment = {"STANDIN_DEVICES": str(device + 1)} | ({} if pools else {"STANDIN_NO_POOLS": "1"})
    words = (backend, name, str(device), "full" if full else "short")
    done = inject(tmp_path, drivers, artifacts[name], *words, **environment)
    usual = done["usual"]
    assert usual["attempts"] == ["right"] * 3
    assert usual["live"]["memory"] == 0
    failures = [found for found in done["results"] if not (device and START.match(found["function"]))]
    assert {found["function"] for found in done["results"]} == set(usual["calls"])
    wrong = [(problem(found, usual), found) for found in failures if problem(found, usual)]
    assert not wrong, "\n".join(f"{why}: {json.dumps(found)}" for why, found in wrong)
