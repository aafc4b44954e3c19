"""What do the calls of the mgpu runtime cost, next to the calls of the driver under them?

Compiles runtime.c with the runtime of this installation and the stand-in driver of the tests, whose calls do nothing
or next to it, and measures one call of ours and what a program would have to call instead: launches, streams, events,
memory, copies. runtime_host.c does the same for the CPU as the device, next to what a C program would do: call the
kernel's function on one core, aligned_alloc, memcpy, memset. Ours and the others take turns; figures are medians over
rounds of many calls. The calling thread has no CUDA context current, as in a program without other CUDA code, or the
one that the runtime uses. A launch that is waited for is measured twice: as our host code calls it, and as stock MLIR's
does. No GPU is needed.

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
FLAGS = ["-O2", "-std=c11", "-D_GNU_SOURCE", f"-I{ROOT / 'runtime_c'}"]
SAVED = RESULTS / "runtime.json"

GOALS = {"launch, 0 arguments": 60.0, "launch, 4 arguments": 60.0, "launch, 16 arguments": 60.0}
GOALS |= {"launch, empty, 1 block": 1000.0, "launch, 1 block of 256": 1000.0}
"""The most nanoseconds that a call may take on top of the other's."""
CONTEXTS = {"none": "no context current", "current": "the runtime's context current", "host": "the CPU as the device"}
OTHERS = {"none": "driver", "current": "driver", "host": "C"}
"""What stands next to ours."""


@dataclass(frozen=True)
class Row:
    """One call: medians in nanoseconds."""

    name: str
    context: str
    ours: float
    other: float

    @property
    def overhead(self) -> float:
        return self.ours - self.other


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    options = arguments_of(__doc__, "rounds", 60, "rounds of 20 000 calls", SAVED).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        programs = {"none": compile_program(Path(folder)), "host": compile_host_program(Path(folder))}
        programs["current"] = programs["none"]
        rows = [row for context in CONTEXTS for row in measure(programs[context], options.rounds, context)]
    print(table(rows))
    missed = missed_goals(rows)
    for line in missed:
        print(f"missed: {line}")
    write_figures(options, report(rows, options.rounds))
    return 1 if missed else 0


def compile_program(folder: Path) -> Path:
    """runtime.c with the static runtime, beside the stand-in driver and an image container."""
    standin = [str(ROOT / "tests" / "standin" / "libcuda.c"), "-o", str(folder / "libcuda.so.1")]
    call(["cc", *FLAGS, "-shared", "-fPIC", "-fvisibility=hidden", *standin], folder)
    write_container(folder / "images", "nvvm", "sm_90", "isa", "k", b".version 8.0\n")
    return link(folder, "runtime")


def compile_host_program(folder: Path) -> Path:
    """runtime_host.c with the static runtime, beside its kernels, as a library and in an image container."""
    kernels = folder / "kernels.so"
    source = str(HERE / "runtime_kernels.c")
    call(["cc", *FLAGS, "-shared", "-fPIC", "-fvisibility=hidden", source, "-o", str(kernels)], folder)
    write_container(folder / "host_images", "host", "", "bin", "empty", kernels.read_bytes())
    return link(folder, "runtime_host")


def link(folder: Path, name: str) -> Path:
    """The program of that name."""
    from offload.paths import package_file

    program = folder / name
    runtime = str(package_file("lib/libmgpu.a"))
    source = str(HERE / f"{name}.c")
    call(["cc", *FLAGS, "-DMGPU_API=", source, runtime, "-pthread", "-ldl", "-o", str(program)], folder)
    return program


def write_container(path: Path, target: str, chip: str, format: str, kernel: str, data: bytes) -> None:
    """One image in a container."""
    from offload.artifact.container import Image, write

    path.write_bytes(write([Image("m", target, chip, "", format, (kernel,), data)]))


def measure(program: Path, rounds: int, context: str) -> list[Row]:
    """The medians of every call. Raises RuntimeError where the program fails."""
    folder = program.parent
    inputs = (
        [folder / "host_images", folder / "kernels.so", rounds] if context == "host" else [folder / "images", rounds]
    )
    done = subprocess.run(
        [program, *map(str, inputs), *([] if context == "host" else [context])],
        env=os.environ | {"LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    ours: dict[str, list[float]] = {}
    others: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        _, name, first, second = line.split("\t")
        ours.setdefault(name, []).append(float(first))
        others.setdefault(name, []).append(float(second))
    return [Row(name, context, statistics.median(ours[name]), statistics.median(others[name])) for name in ours]


def missed_goals(rows: Sequence[Row]) -> list[str]:
    """A line for each goal that is missed."""
    return [
        f"{row.name}, {CONTEXTS[row.context]}: {row.overhead:.0f} ns on top of {OTHERS[row.context]}'s; "
        f"the goal is {goal:.0f}"
        for row in rows
        if (goal := GOALS.get(row.name)) is not None and row.overhead > goal
    ]


def table(rows: Sequence[Row]) -> str:
    """The figures as text."""
    lines = []
    for context, what in CONTEXTS.items():
        lines.append(f"{what:<31} {'ours':>11} {OTHERS[context]:>11} {'overhead':>12} {'ratio':>6} {'goal':>7}")
        for row in rows:
            if row.context == context:
                goal = f"{GOALS[row.name]:.0f} ns" if row.name in GOALS else ""
                lines.append(
                    f"{row.name:<31} {row.ours:>8.0f} ns {row.other:>8.0f} ns {row.overhead:>9.0f} ns "
                    f"{row.ours / row.other:>6.1f} {goal:>7}"
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
                OTHERS[row.context].lower(): round(row.other, 1),
                "overhead": round(row.overhead, 1),
                "ratio": round(row.ours / row.other, 2),
                "goal": GOALS.get(row.name),
            }
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
