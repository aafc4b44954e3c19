"""How long does a build take, next to other compilers, and where some or all of it was compiled before?

Three programs: saxpy, a file of thirty kernels, a product on the matrix units (one warp for a tile, wmma). Each for one
chip and for five: from a new process, from one that runs; with a cache that has nothing of it, has four of the five
chips, has all but changed host code, has all. Beside them, for the same chips: nvcc, hipcc, MLIR's command-line tools,
iree-compile, Triton. What each makes differs, and the table says it: Triton makes kernels without host code, MLIR's
tools a library that lacks a runtime. Then fifty files: all, one or none of them changed; for three targets on one core
and on two. Ways take turns, so that what else the machine does falls on all of them. Times are wall times in seconds,
without the first run of each, which fills the file caches. A tool that is not installed, or fails, is named with why;
they come with `pip install '.[bench]'` and `sh scripts/setup_system.sh bench`. No GPU is needed.

    python bench/build.py [--runs N] [--programs NAME,…] [--tools NAME,…] [--json FILE] [--save]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from builds import fifty, ours, with_hipcc, with_iree, with_mlir_tools, with_nvcc, with_triton
from builds.plot import plot
from builds.programs import programs
from builds.results import missed_goals, report, table
from builds.way import Skipped, Way, first_runs, measure
from common import RESULTS, arguments_of, draw, some_of, write_figures

SAVED = RESULTS / "build.json"
PICTURE = RESULTS / "build.svg"
PEERS = {peer.NAME: peer for peer in (with_nvcc, with_mlir_tools, with_iree, with_triton, with_hipcc)}
TOOLS = (ours.NAME, *PEERS)
PROGRAMS = ("saxpy", "thirty", "matmul", fifty.PROGRAM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    parser = arguments_of(__doc__, "runs", 7, "runs of each way", SAVED)
    parser.add_argument("--programs", type=some_of(PROGRAMS), default=list(PROGRAMS), help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--tools", type=some_of(TOOLS), default=list(TOOLS), help=f"of {', '.join(TOOLS)}")
    options = parser.parse_args(arguments)

    def say(text: str) -> None:
        print(f"{text} …", file=sys.stderr)

    absent = {name: why for name in options.tools if name in PEERS and (why := PEERS[name].missing())}
    present = [name for name in options.tools if name not in absent]
    skipped = [Skipped("all", name, why) for name, why in absent.items()]
    ways: list[Way] = []
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
        for program in options.programs:
            found = ways_of(program, present, Path(folder) / program)
            skipped += [way for way in found if isinstance(way, Skipped)]
            say(f"{program}, once before the clock runs")
            working, failing = first_runs([way for way in found if isinstance(way, Way)], ours.NAME)
            skipped += failing
            if working:
                times |= measure(working, options.runs, say)
            ways += working
    print(table(ways, times))
    for each in skipped:
        print(f"skipped: {each.program}, {each.tool}: {each.why}")
    for line in missed_goals(ways, times):
        print(f"missed: {line}")
    versions = {"llvm": ours.version(), **{name: PEERS[name].version() or "" for name in present if name in PEERS}}
    figures = report(__doc__, ways, times, skipped, versions)
    write_figures(options, figures)
    if options.save:
        draw(plot, figures, PICTURE)
    return 1 if figures["missed"] else 0


def ways_of(name: str, tools: Sequence[str], folder: Path) -> list[Way | Skipped]:
    """Every way to build a program with these tools."""
    folder.mkdir()
    if name == fifty.PROGRAM:
        return fifty.ways(folder) if ours.NAME in tools else []
    program = programs()[name]
    found: list[Way | Skipped] = [*ours.Ours(program, folder).ways()] if ours.NAME in tools else []
    for tool in tools:
        if tool in PEERS:
            found += PEERS[tool].ways(program, folder)
    return found


if __name__ == "__main__":
    sys.exit(main())
