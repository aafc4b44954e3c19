"""How long does `pip wheel` of a package with kernels take, next to the same package with one extension in C?

Builds examples/packages/setuptools for three targets, for the CPU alone, and again after nothing or one of ten modules
has changed; and peers/packages, which has the same two functions in C. All without build isolation, which would measure
downloads, and without the cache. The ways take turns. Times are wall times in seconds, without the one run of each that
fills the file caches. No GPU is needed.

    python bench/packages.py [--runs N] [--json FILE] [--save]
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from common import RESULTS, arguments_of, call, heading, spread, write_figures

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "packages" / "setuptools"
PEER = HERE / "peers" / "packages"
SAVED = RESULTS / "packages.json"
YARDSTICK = "c"
GOALS = {"kernels": 2.0}
"""The longest time that a way may take, as a multiple of the C extension's."""
TABLE = "[[tool.offload.kernels]]"
IGNORED = shutil.ignore_patterns("build", "*.egg-info", "tests", "tox.ini")


@dataclass(frozen=True)
class Way:
    """One way to build. ``prepare`` makes or changes the package before each run, which is not measured."""

    name: str
    what: str
    package: Path
    prepare: Callable[[], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    options = arguments_of(__doc__, "runs", 9, "runs of each way", SAVED).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        taking_part = ways(Path(folder))
        times = measure(taking_part, options.runs)
    print(table(taking_part, times))
    missed = [
        f"{name} takes {ratio(times, name):.2f} of the C extension's time; the goal is {goal}"
        for name, goal in GOALS.items()
        if ratio(times, name) > goal
    ]
    for line in missed:
        print(f"missed: {line}")
    write_figures(options, report(taking_part, times))
    return 1 if missed else 0


def ways(folder: Path) -> list[Way]:
    """Every way to build, with its package in a folder of the measurement's own."""
    return [
        fresh("kernels", "two kernels for nvvm:sm_90, rocdl:gfx942 and host", EXAMPLE, folder),
        fresh("kernels host", "two kernels for the CPU alone", EXAMPLE, folder, 'targets = ["host"]'),
        fresh(YARDSTICK, "two functions in one C extension", PEER, folder),
        unchanged("unchanged", folder),
        one_of_ten("one of ten", folder),
    ]


def fresh(name: str, what: str, source: Path, folder: Path, targets: str | None = None) -> Way:
    """A package that nothing has been built in."""
    package = folder / name.replace(" ", "-")

    def prepare() -> None:
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(source, package, ignore=IGNORED)
        if targets is not None:
            path = package / "pyproject.toml"
            lines = [targets if line.startswith("targets = ") else line for line in path.read_text().splitlines()]
            path.write_text("\n".join(lines) + "\n")

    return Way(name, what, package, prepare)


def unchanged(name: str, folder: Path) -> Way:
    """A package that is built already."""
    way = fresh(name, "the kernels again, with nothing changed", EXAMPLE, folder)

    def prepare() -> None:
        if not way.package.exists():
            way.prepare()

    return Way(way.name, way.what, way.package, prepare)


def one_of_ten(name: str, folder: Path) -> Way:
    """A package of ten modules, of which one changes before each run."""
    package = folder / name.replace(" ", "-")
    sources = package / "src" / "vectorops"

    def prepare() -> None:
        if package.exists():
            path = sources / "k3.mlir"
            path.write_text(path.read_text() + "// changed\n")
            return
        shutil.copytree(EXAMPLE, package, ignore=IGNORED)
        head = (package / "pyproject.toml").read_text().split(TABLE)[0]
        tables = []
        for number in range(10):
            shutil.copy(EXAMPLE / "src" / "vectorops" / "scale.mlir", sources / f"k{number}.mlir")
            targets = 'targets = ["nvvm:sm_90", "rocdl:gfx942", "host"]'
            named = f'module = "vectorops.k{number}"\nsources = ["src/vectorops/k{number}.mlir"]'
            tables.append(f"{TABLE}\n{named}\n{targets}\n")
        (package / "pyproject.toml").write_text(head + "\n".join(tables))

    return Way(name, "ten modules for three targets, one of them changed", package, prepare)


def measure(taking_part: Sequence[Way], runs: int) -> dict[str, list[float]]:
    """Wall times in seconds of every way; the ways take turns. Raises where a build fails."""
    times: dict[str, list[float]] = {way.name: [] for way in taking_part}
    for turn in range(runs + 1):
        for way in taking_part:
            way.prepare()
            wheels = way.package.parent / f"{way.package.name}-wheels"
            shutil.rmtree(wheels, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index"]
            command = [*pip, "--no-deps", "--no-build-isolation", "-w", str(wheels), str(way.package)]
            started = time.perf_counter()
            call(command, way.package.parent, os.environ | {"OFFLOAD_CACHE_DIR": ""})
            taken = time.perf_counter() - started
            if len(list(wheels.glob("*.whl"))) != 1:
                raise RuntimeError(f"{way.name}: no wheel in {wheels}")
            if turn > 0:
                times[way.name].append(taken)
    return times


def ratio(times: dict[str, list[float]], name: str) -> float:
    """A way's median as a multiple of the C extension's."""
    return statistics.median(times[name]) / statistics.median(times[YARDSTICK])


def table(taking_part: Sequence[Way], times: dict[str, list[float]]) -> str:
    """The figures as text: seconds, and the ratio to the C extension with the goal where there is one."""
    lines = [f"{'way':<13} {'median':>8} {'min':>8} {'max':>8}  {'/ c':>6} {'goal':>6}  what"]
    for way in taking_part:
        values = times[way.name]
        figures = [statistics.median(values), min(values), max(values)]
        cells = " ".join(f"{figure:>6.2f} s" for figure in figures)
        goal = f"{GOALS[way.name]:.2f}" if way.name in GOALS else ""
        lines.append(f"{way.name:<13} {cells}  {ratio(times, way.name):>6.2f} {goal:>6}  {way.what}")
    return "\n".join(lines)


def report(taking_part: Sequence[Way], times: dict[str, list[float]]) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in seconds."""
    return {
        **heading(__doc__, {name: metadata.version(name) for name in ("pip", "setuptools")}),
        "ways": [
            {
                "name": way.name,
                "what": way.what,
                **spread(times[way.name], 4),
                "ratio_to_c": round(ratio(times, way.name), 4),
                "goal": GOALS.get(way.name),
            }
            for way in taking_part
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
