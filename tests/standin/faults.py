"""``faults.py ARTIFACT COPY KERNELS BACKEND NAME DEVICE full|short`` (see stage.py): lets each call of the driver that
a scenario makes fail in turn (short: one of each function's), and prints what came of it as JSON.

One fork per failure: the artifact is loaded before, the driver is used after, so that each child starts anew. A child
runs the scenario with the failure, then twice without, drops all that it had, and counts what is left."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from stage import attempt, backend, open_driver, open_library, words

KINDS = ("streams", "events", "memory", "modules")  # of standin.h
COUNTS = {"streams": 0, "events": 1, "pooled streams": 2, "pooled events": 3, "allocations": 4}  # of mgpu.h
CODE = 999

name, device, extent = words
library = open_library()
driver = open_driver(library)


def calls() -> dict[str, int]:
    """How often each function has been called since `standin_count`."""
    found: dict[str, int] = {}
    times = ctypes.c_int()
    while (function := driver.standin_calls(len(found), ctypes.byref(times))) is not None:
        found[function.decode()] = times.value
    return found


told: list[str] = []
sys.unraisablehook = lambda said: told.append(f"{type(said.exc_value).__name__}: {said.exc_value}")


def attempted(name: str, device: int) -> str:
    """What the attempt says, or what the end of one of its objects has told on stderr."""
    said = attempt(library, name, device)
    ends = [told.pop() for _ in range(len(told))]
    return ends[0] if said == "right" and len(ends) == 1 else " and ".join([said, *ends])


def run(function: str | None, turn: int) -> dict[str, Any]:
    driver.standin_count(function and function.encode(), turn, CODE)
    attempts = [attempted(name, int(device))]
    made = calls()
    driver.standin_count(None, 0, 0)
    attempts += [attempted(name, int(device)) for _ in range(2)]
    gc.collect()
    live = {kind: driver.standin_live(number) for number, kind in enumerate(KINDS)}
    counts = {kind: library._native.api.mgpuCount(number) for kind, number in COUNTS.items()}
    # HIP keeps a thread's last failure for whoever asks next, which may be another library.
    last = driver.hipGetLastError() if backend == "hip" else 0
    return {"attempts": attempts, "calls": made, "live": live, "counts": counts, "last": last}


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of ``work`` in a fork of this process, and how the fork ended where it gave none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(said) if status == 0 and said else {"attempts": [f"the process ended with {status}"]}


usual = in_child(lambda: run(None, 0))
results = []
for function, times in usual.get("calls", {}).items():
    turns = range(1, times + 1) if extent == "full" else [(times + 1) // 2]
    for turn in turns:
        results.append({"function": function, "turn": turn} | in_child(lambda f=function, t=turn: run(f, t)))
print(json.dumps({"usual": usual, "results": results}))
