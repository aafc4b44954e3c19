"""What do the calls of the mgpu runtime cost, next to the calls of the driver under them?

Compiles runtime.c with the runtime of this installation and the stand-in driver of the tests, whose calls do nothing
or next to it, and measures one call of ours and what a program would have to call instead: launches, streams, events,
memory, copies. Ours and the driver's take turns; figures are medians over rounds of many calls. The calling thread has
no CUDA context current, as in a program without other CUDA code, or the one that the runtime uses. A launch that is
waited for is measured twice: as our host code calls it, and as stock MLIR's does. No GPU is needed.

    python bench/runtime.py [--rounds N] [--json FILE] [--save]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import RESULTS, arguments_of, call, heading, write_figures

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SAVED = RESULTS / "runtime.json"

GOALS = {"launch, 0 arguments": 60.0, "launch, 4 arguments": 60.0, "launch, 16 arguments": 60.0}
"""The most nanoseconds that a call may take on top of the driver's."""
CONTEXTS = {"none": "no context current", "current": "the runtime's context current"}


@dataclass(frozen=True)
class Row:
    """One call: medians in nanoseconds."""

    name: str
    context: str
    ours: float
    driver: float

    @property
    def overhead(self) -> float:
        return self.ours - self.driver


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    options = arguments_of(__doc__, "rounds", 60, "rounds of 20 000 calls", SAVED).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        program = compile_program(Path(folder))
        rows = [row for context in CONTEXTS for row in measure(program, options.rounds, context)]
    print(table(rows))
    missed = missed_goals(rows)
    for line in missed:
        print(f"missed: {line}")
    write_figures(options, report(rows, options.rounds))
    return 1 if missed else 0


def compile_program(folder: Path) -> Path:
    """runtime.c with the static runtime, beside the stand-in driver and an image container."""
    from offload.artifact.container import Image, write
    from offload.paths import package_file

    flags = ["-O2", "-std=c11", "-D_GNU_SOURCE", f"-I{ROOT / 'runtime_c'}"]
    standin = [str(ROOT / "tests" / "standin" / "libcuda.c"), "-o", str(folder / "libcuda.so.1")]
    call(["cc", *flags, "-shared", "-fPIC", "-fvisibility=hidden", *standin], folder)
    program = folder / "runtime"
    runtime = str(package_file("lib/libmgpu.a"))
    call(
        ["cc", *flags, "-DMGPU_API=", str(HERE / "runtime.c"), runtime, "-pthread", "-ldl", "-o", str(program)], folder
    )
    text = b".version 8.0\n"
    image = Image("m", "nvvm", "sm_90", "nvptx64-nvidia-cuda", "isa", ("k",), text)
    (folder / "images").write_bytes(write([image]))
    return program


def measure(program: Path, rounds: int, context: str) -> list[Row]:
    """The medians of every call. Raises RuntimeError where the program fails."""
    done = subprocess.run(
        [program, program.parent / "images", str(rounds), context],
        env=os.environ | {"LD_LIBRARY_PATH": str(program.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    ours: dict[str, list[float]] = {}
    driver: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        _, name, first, second = line.split("\t")
        ours.setdefault(name, []).append(float(first))
        driver.setdefault(name, []).append(float(second))
    return [Row(name, context, statistics.median(ours[name]), statistics.median(driver[name])) for name in ours]


def missed_goals(rows: Sequence[Row]) -> list[str]:
    """A line for each goal that is missed."""
    return [
        f"{row.name}, {CONTEXTS[row.context]}: {row.overhead:.0f} ns on top of the driver's; the goal is {goal:.0f}"
        for row in rows
        if (goal := GOALS.get(row.name)) is not None and row.overhead > goal
    ]


def table(rows: Sequence[Row]) -> str:
    """The figures as text."""
    lines = []
    for context, what in CONTEXTS.items():
        lines.append(f"{what:<31} {'ours':>8} {'driver':>8} {'overhead':>9} {'ratio':>6} {'goal':>6}")
        for row in rows:
            if row.context == context:
                goal = f"{GOALS[row.name]:.0f} ns" if row.name in GOALS else ""
                lines.append(
                    f"{row.name:<31} {row.ours:>5.0f} ns {row.driver:>5.0f} ns {row.overhead:>6.0f} ns "
                    f"{row.ours / row.driver:>6.1f} {goal:>6}"
                )
    return "\n".join(lines)


def report(rows: Sequence[Row], rounds: int) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in nanoseconds."""
    return {
        **heading(__doc__, {}),
        "driver": "the stand-in of tests/standin, whose calls do nothing or next to it",
        "rounds": rounds,
        "calls": [
            {
                "name": row.name,
                "context": CONTEXTS[row.context],
                "ours": round(row.ours, 1),
                "driver": round(row.driver, 1),
                "overhead": round(row.overhead, 1),
                "ratio": round(row.ours / row.driver, 2),
                "goal": GOALS.get(row.name),
            }
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
