"""How long does building a small kernel take, next to nvcc and to MLIR's own command-line tools?

Builds examples/saxpy.mlir into one shared library: with a new ``offload build`` process for three targets, for one,
for the CPU alone; from a Python process that runs already; with nvcc from the same kernel in CUDA C++
(peers/saxpy.cu); with mlir-opt, mlir-translate and clang. The ways take turns, so that what else the machine does
falls on all of them. Times are wall times in seconds, without the one run of each that fills the file caches and
Python's bytecode caches, which an installed package has. No GPU is needed.

    python bench/build.py [--runs N] [--json FILE] [--save]
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import RESULTS, arguments_of, call, heading, version_of, write_figures

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "saxpy.mlir"
PEER = HERE / "peers" / "saxpy.cu"
SAVED = RESULTS / "build.json"

ALL_TARGETS = ("nvvm:sm_90", "rocdl:gfx942", "host")
YARDSTICK = "nvcc"
GOALS = {"cli": 0.5, "python": 0.15}
"""The longest time that a way may take, as a part of nvcc's."""

PASSES = (
    "gpu-kernel-outlining,nvvm-attach-target{{chip=sm_90 O=3}},"
    "gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{{index-bitwidth=64}},canonicalize,cse,"
    "reconcile-unrealized-casts),convert-scf-to-cf,gpu-to-llvm,"
    "gpu-module-to-binary{{toolkit={toolkit} format=bin}},convert-func-to-llvm,reconcile-unrealized-casts"
)


@dataclass(frozen=True)
class Way:
    """One way to build. ``run`` writes ``output`` anew and raises where it cannot."""

    name: str
    what: str
    run: Callable[[], None]
    output: Path


@dataclass(frozen=True)
class Skipped:
    """A way that is not possible here, and why."""

    name: str
    why: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    options = arguments_of(__doc__, "runs", 15, "runs of each way", SAVED).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        found = ways(Path(folder))
        taking_part = [way for way in found if isinstance(way, Way)]
        times = measure(taking_part, options.runs)
    skipped = [way for way in found if isinstance(way, Skipped)]
    print(table(taking_part, times))
    for way in skipped:
        print(f"skipped: {way.name}: {way.why}")
    missed = missed_goals(times)
    for line in missed:
        print(f"missed: {line}")
    write_figures(options, report(taking_part, times, skipped))
    return 1 if missed else 0


def ways(folder: Path) -> list[Way | Skipped]:
    """Every way to build, with its output in a folder of the measurement's own."""
    return [
        command_line("cli", ALL_TARGETS, folder),
        in_process("python", ALL_TARGETS, folder),
        command_line("cli nvvm", ALL_TARGETS[:1], folder),
        command_line("cli host", ALL_TARGETS[2:], folder),
        with_nvcc(YARDSTICK, folder),
        with_mlir_tools("mlir tools", folder),
    ]


def measure(taking_part: Sequence[Way], runs: int) -> dict[str, list[float]]:
    """Wall times in seconds of every way; the ways take turns. Raises where a build fails."""
    times: dict[str, list[float]] = {way.name: [] for way in taking_part}
    for turn in range(runs + 1):
        for way in taking_part:
            way.output.unlink(missing_ok=True)
            started = time.perf_counter()
            way.run()
            taken = time.perf_counter() - started
            if not way.output.exists() or way.output.read_bytes()[:4] != b"\x7fELF":
                raise RuntimeError(f"{way.name}: no shared library at {way.output}")
            if turn > 0:
                times[way.name].append(taken)
    return times


# The ways.


def command_line(name: str, targets: Sequence[str], folder: Path) -> Way:
    """``offload build`` in a process of its own."""
    output = folder / f"{name}.so".replace(" ", "-")
    words = [word for target in targets for word in ("--target", target)]
    command = [
        sys.executable,
        "-m",
        "offload",
        "build",
        "--quiet",
        "--no-cache",
        str(EXAMPLE),
        *words,
        "-o",
        str(output),
    ]
    # The interpreter's flags of whoever measures, and bytecode: an installed package has its own, compiled.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    what = f"offload build, new process: {' '.join(targets)}"
    return Way(name, what, lambda: call(command, folder, environment), output)


def in_process(name: str, targets: Sequence[str], folder: Path) -> Way:
    """``offload.build`` in this process; no cache is involved."""
    import offload

    output = folder / f"{name}.so"
    what = f"offload.build(), running process: {' '.join(targets)}"
    return Way(name, what, lambda: void(offload.build(EXAMPLE, output, targets=targets, cache=False)), output)


def with_nvcc(name: str, folder: Path) -> Way | Skipped:
    """nvcc, from PATH or from the wheel nvidia-cuda-nvcc."""
    tool = find_nvcc()
    if tool is None:
        return Skipped(name, "no nvcc on PATH, and the wheel nvidia-cuda-nvcc is not installed")
    output = folder / f"{name}.so"
    command = [str(tool), "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90", str(PEER), "-o", str(output)]
    way = Way(name, f"nvcc {version_of(tool)} ({tool}): sm_90", lambda: call(command, folder), output)
    try:
        way.run()
    except RuntimeError as error:
        return Skipped(name, f"{tool} does not work here: {error}")
    return way


def with_mlir_tools(name: str, folder: Path) -> Way | Skipped:
    """mlir-opt | mlir-translate | clang, for NVIDIA; the library lacks a runtime, which would be another file."""
    tools = [shutil.which(f"{tool}-22") for tool in ("mlir-opt", "mlir-translate", "clang")]
    if None in tools:
        return Skipped(name, "mlir-opt-22, mlir-translate-22 or clang-22 is not on PATH")
    toolkit = find_toolkit()
    if toolkit is None:
        return Skipped(name, "no CUDA toolkit with ptxas and libdevice: pip install nvidia-cuda-nvcc nvidia-nvvm")
    output = folder / "mlir-tools.so"
    opt, translate, clang = (str(tool) for tool in tools)
    pipeline = f"builtin.module({PASSES.format(toolkit=toolkit)})"
    steps = [
        [opt, str(EXAMPLE), f"--pass-pipeline={pipeline}"],
        [translate, "--mlir-to-llvmir"],
        [clang, "-x", "ir", "-", "-O3", "-shared", "-fPIC", "-Wno-override-module", "-o", str(output)],
    ]
    script = "set -o pipefail; " + " | ".join(shlex.join(step) for step in steps)
    what = f"mlir-opt | mlir-translate | clang {version_of(Path(clang))}: sm_90"
    return Way(name, what, lambda: call(["bash", "-c", script], folder), output)


def void(_: object) -> None:
    """Drops a result."""


# What is installed.


def find_nvcc() -> Path | None:
    """nvcc on PATH, else the wheel's."""
    found = shutil.which("nvcc")
    if found:
        return Path(found)
    wheel = wheel_toolkit()
    return wheel / "bin" / "nvcc" if wheel and (wheel / "bin" / "nvcc").exists() else None


def find_toolkit() -> Path | None:
    """The CUDA toolkit that MLIR is given: the wheels', else the one of CUDA_HOME or of nvcc."""
    nvcc = find_nvcc()
    places = [wheel_toolkit(), *(Path(os.environ[key]) for key in ["CUDA_HOME"] if os.environ.get(key))]
    places += [Path("/usr/local/cuda"), *([nvcc.resolve().parent.parent] if nvcc else [])]
    needed = ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc")
    return next((place for place in places if place and all((place / file).exists() for file in needed)), None)


def wheel_toolkit() -> Path | None:
    """The folder that the wheels nvidia-cuda-nvcc and nvidia-nvvm share."""
    package = importlib.util.find_spec("nvidia")
    roots = package.submodule_search_locations if package else None
    return next((Path(root) / "cu13" for root in roots or [] if (Path(root) / "cu13").is_dir()), None)


# What comes out.


def ratios(times: dict[str, list[float]]) -> dict[str, float]:
    """Each median divided by nvcc's; empty without nvcc."""
    if YARDSTICK not in times:
        return {}
    unit = statistics.median(times[YARDSTICK])
    return {name: statistics.median(values) / unit for name, values in times.items()}


def missed_goals(times: dict[str, list[float]]) -> list[str]:
    """A line for each goal that is missed; none without nvcc."""
    found = ratios(times)
    return [
        f"{name} takes {found[name]:.2f} of nvcc's time; the goal is {goal}"
        for name, goal in GOALS.items()
        if name in found and found[name] > goal
    ]


def table(taking_part: Sequence[Way], times: dict[str, list[float]]) -> str:
    """The figures as text: milliseconds, and the ratio to nvcc with the goal where there is one."""
    lines = [f"{'way':<11} {'median':>8} {'min':>8} {'max':>8}  {'/ nvcc':>7} {'goal':>6}  what"]
    relative = ratios(times)
    for way in taking_part:
        values = times[way.name]
        figures = [statistics.median(values), min(values), max(values)]
        cells = " ".join(f"{1000 * figure:>5.0f} ms" for figure in figures)
        ratio = f"{relative[way.name]:.2f}" if relative else "-"
        goal = f"{GOALS[way.name]:.2f}" if way.name in GOALS else ""
        lines.append(f"{way.name:<11} {cells}  {ratio:>7} {goal:>6}  {way.what}")
    return "\n".join(lines)


def report(taking_part: Sequence[Way], times: dict[str, list[float]], skipped: Sequence[Skipped]) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in seconds."""
    from offload.compiler.native import native

    relative = ratios(times)
    return {
        **heading(__doc__, {"llvm": native().llvm_version}),
        "ways": [
            {
                "name": way.name,
                "what": way.what,
                "runs": len(times[way.name]),
                "median": round(statistics.median(times[way.name]), 5),
                "min": round(min(times[way.name]), 5),
                "max": round(max(times[way.name]), 5),
                "ratio_to_nvcc": round(relative[way.name], 4) if relative else None,
                "goal": GOALS.get(way.name),
            }
            for way in taking_part
        ],
        "skipped": [{"name": way.name, "why": way.why} for way in skipped],
    }


if __name__ == "__main__":
    sys.exit(main())
