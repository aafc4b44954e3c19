"""What does it cost to call a function from Python with arrays, next to other ways of calling C and C++?

Functions that do nothing, with no array, one, three and eight vectors of float32 from NumPy. Ours are compiled for the
CPU and called as a user calls them, through the extension and through ctypes. The others: ctypes with descriptors made
by hand, cffi, pybind11, nanobind, Numba, tvm-ffi (bench/peers/call). All take turns in one process; figures are
medians over rounds, of the thread's own time, so that a busy machine disturbs them little. Ours, cffi and ctypes let
go of the interpreter's lock around the call, which takes some 40 ns; nanobind, pybind11 and Numba keep it, so that
other threads wait. A second table has what else ours are called with: three arrays by name, with a stream, of another
package (DLPack), and kernels; through the extension and through ctypes.

    pip install '.[bench]'; python bench/call.py [--rounds N] [--json FILE] [--save]
"""

from __future__ import annotations

import importlib.metadata
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import RESULTS, arguments_of, call, heading, write_figures
from peers.call import PEERS

SAVED = RESULTS / "call.json"
COUNTS = (0, 1, 3, 8)
FAST, CTYPES = "offload", "offload through ctypes"
GOAL = 350.0
"""The most nanoseconds that a call with three arrays may take; and no more than one other way may be faster."""
SAMPLE = 0.001
"""Seconds of calls in a row, after which another way has its turn."""
PACKAGES = ("numpy", "cffi", "pybind11", "nanobind", "numba", "apache-tvm-ffi")

Times = dict[str, dict[int, float]]
Calls = dict[str, tuple[str, dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 2 where a package is missing, 0 otherwise."""
    options = arguments_of(__doc__, "rounds", 60, "rounds of calls", SAVED).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        try:
            ways = everything(Path(folder))
        except ModuleNotFoundError as error:
            print(f"missing: {error.name}, one of the other ways: pip install 'offload[bench]'", file=sys.stderr)
            return 2
        times = measure(ways, options.rounds)
    more = measure_forms(forms(), options.rounds)
    print(table(times))
    print(table_of_forms(more))
    missed = missed_goals(times)
    for line in missed:
        print(f"missed: {line}")
    write_figures(options, report(times, more, options.rounds))
    return 1 if missed else 0


def everything(folder: Path) -> dict[str, dict[int, Callable[..., Any]]]:
    """What is measured, by name and number of arrays. Raises RuntimeError where something cannot be built, ImportError
    where a package is missing."""
    import offload
    from offload.runtime import FAST as EXTENSION

    if not EXTENSION:
        raise RuntimeError("offload was installed without its extension for fast calls")
    program = "\n".join(
        f"func.func @f{count}({', '.join(f'%x{i}: memref<?xf32>' for i in range(count))}) {{ return }}"
        for count in COUNTS
    )
    library = offload.compile(program, targets=["host"])
    ours = {count: library.functions[f"f{count}"] for count in COUNTS}
    ways: dict[str, dict[int, Callable[..., Any]]] = {
        FAST: dict(ours),
        CTYPES: {count: function._call for count, function in ours.items()},
    }
    return ways | {name: make(folder, call) for name, make in PEERS.items()}


def measure(ways: dict[str, dict[int, Callable[..., Any]]], rounds: int) -> Times:
    """The medians of all calls, in nanoseconds."""
    import numpy

    names = [f"x{index}" for index in range(max(COUNTS))]
    arrays = {name: numpy.zeros(1000, numpy.float32) for name in names}
    samples: dict[tuple[str, int], list[float]] = {}
    timers = {
        (way, count): timeit.Timer(
            f"f({', '.join(names[:count])})", timer=time.thread_time, globals={"f": functions[count], **arrays}
        )
        for way, functions in ways.items()
        for count in COUNTS
    }
    calls = {}
    for key, timer in timers.items():
        timer.timeit(100)
        calls[key] = max(10, round(SAMPLE / (timer.timeit(100) / 100)))
    for _ in range(rounds):
        for key, timer in timers.items():
            samples.setdefault(key, []).append(timer.timeit(calls[key]) / calls[key] * 1e9)
    return {way: {count: statistics.median(samples[way, count]) for count in COUNTS} for way in ways}


class Foreign:
    """An array of another package."""

    def __init__(self, array: Any) -> None:
        self.__dlpack__ = array.__dlpack__


def forms() -> Calls:
    """Ways of calling with three arrays: a statement that calls `f`, and its names; "through" stands for the way."""
    import numpy

    import offload

    kernel = (
        "gpu.module @k { gpu.func @nothing(%x0: memref<?xf32>, %x1: memref<?xf32>, %x2: memref<?xf32>) kernel "
        "{ gpu.return } }"
    )
    program = "func.func @f(%x0: memref<?xf32>, %x1: memref<?xf32>, %x2: memref<?xf32>) { return }" + kernel
    library = offload.compile(program, targets=["host"])
    library.use("host")
    f, launch = library.functions["f"], library.kernels["nothing"][1, 1]
    stream = library.stream()
    arrays = {f"x{index}": numpy.zeros(1000, numpy.float32) for index in range(3)}
    foreign = {name: Foreign(array) for name, array in arrays.items()}
    pending = library.kernels["nothing"][1, 1, stream]
    return {
        "by name": ("f(x0=x0, x1=x1, x2=x2)", {"f": f, **arrays}),
        "on a stream": ("f(x0, x1, x2, stream=s)", {"f": f, "s": stream, **arrays}),
        "DLPack": ("f(x0, x1, x2)", {"f": f, **foreign}),
        "kernel": ("f(x0, x1, x2)", {"f": launch, **arrays}),
        "kernel on a stream": ("f(x0, x1, x2)", {"f": pending, **arrays}),
    }


def measure_forms(calls: Calls, rounds: int) -> dict[str, dict[str, float]]:
    """The medians of all forms through either way, in nanoseconds."""
    timers = {}
    for form, (statement, names) in calls.items():
        for way, function in ((FAST, names["f"]), (CTYPES, names["f"]._call)):
            timers[form, way] = timeit.Timer(statement, timer=time.thread_time, globals={**names, "f": function})
    samples: dict[tuple[str, str], list[float]] = {key: [] for key in timers}
    for _ in range(rounds):
        for key, timer in timers.items():
            samples[key].append(timer.timeit(200) / 200 * 1e9)
    return {form: {way: statistics.median(samples[form, way]) for way in (FAST, CTYPES)} for form in calls}


def table_of_forms(times: dict[str, dict[str, float]]) -> str:
    """The figures as text."""
    lines = [f"{'ns with three arrays':<24}{'extension':>12}{'ctypes':>12}"]
    lines += [f"{form:<24}{row[FAST]:>12.0f}{row[CTYPES]:>12.0f}" for form, row in times.items()]
    return "\n".join(lines)


def place(times: Times, count: int) -> int:
    """Which of all ways the extension is for so many arrays, counted from 1."""
    return 1 + sum(row[count] < times[FAST][count] for row in times.values())


def missed_goals(times: Times) -> list[str]:
    """A line for each goal that is missed."""
    missed = []
    if times[FAST][3] > GOAL:
        missed.append(f"{times[FAST][3]:.0f} ns with three arrays; the goal is {GOAL:.0f}")
    for count in COUNTS:
        if place(times, count) > 2:
            missed.append(f"place {place(times, count)} with {count} arrays; the goal is 2")
    return missed


def table(times: Times) -> str:
    """The figures as text."""
    lines = [f"{'ns per call, by arrays':<24}" + "".join(f"{count:>9}" for count in COUNTS)]
    lines += [f"{way:<24}" + "".join(f"{row[count]:>9.0f}" for count in COUNTS) for way, row in times.items()]
    lines.append(f"{'place of ours':<24}" + "".join(f"{place(times, count):>9}" for count in COUNTS))
    return "\n".join(lines)


def report(times: Times, forms: dict[str, dict[str, float]], rounds: int) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in nanoseconds."""
    return {
        **heading(__doc__, {name: importlib.metadata.version(name) for name in PACKAGES}),
        "rounds": rounds,
        "goal": {"three arrays": GOAL, "place": 2},
        "ways": [
            {"name": way, "ns": {str(count): round(row[count], 1) for count in COUNTS}} for way, row in times.items()
        ],
        "forms": [{"name": form, "ns": {way: round(ns, 1) for way, ns in row.items()}} for form, row in forms.items()],
    }


if __name__ == "__main__":
    sys.exit(main())
