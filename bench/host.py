"""Is the CPU target as fast as the best engines for CPUs?

Runs eleven kernels, written for a GPU, on the target host:native, and next to them what others make of the same
problems: NumPy, Numba, PoCL with the same kernels in OpenCL C, IREE with tensor programs, and C loops with OpenMP.
``linalg`` is offload with IREE's tensor programs: what its passes make of them, beside the kernels that people wrote.
Every engine calls with arrays that are there already, in a process of its own; engines take turns, and every answer is
compared with NumPy's in double precision. Each kernel has a large problem, and a small one that shows what a call
costs. Figures are medians over the turns. An engine that is not installed is named with what is missing; they come
with `pip install '.[bench]'`, PoCL's library with `sh scripts/setup_system.sh bench`.

    python bench/host.py [--runs N] [--engines NAME,…] [--kernels NAME,…] [--json FILE] [--save]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from common import RESULTS, arguments_of, draw, some_of, write_figures
from host.engine import ENGINES
from host.measuring import Worker, measure
from host.plot import plot
from host.problems import KERNELS
from host.results import LOOPS, YARDSTICK, missed_goals, report, table

SAVED = RESULTS / "host.json"
PICTURE = RESULTS / "host.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints a table; returns 1 where a goal is missed, 0 otherwise."""
    parser = arguments_of(__doc__, "runs", 9, "turns of each engine on each problem", SAVED)
    parser.add_argument("--engines", type=some_of(ENGINES), default=list(ENGINES), help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--kernels", type=some_of(KERNELS), default=list(KERNELS), help=f"of {', '.join(KERNELS)}")
    options = parser.parse_args(arguments)
    workers = [Worker(engine) for engine in options.engines]
    present = [worker for worker in workers if not worker.missing]
    missing = {worker.engine: worker.missing for worker in workers if worker.missing}

    def say(text: str) -> None:
        print(f"{text} …", file=sys.stderr)

    loops = [worker for worker in present if worker.engine == LOOPS]
    cells = measure(loops, [YARDSTICK], options.runs, say, sizes=["large"])
    cells += measure(present, options.kernels, options.runs, say)
    for worker in workers:
        worker.close()
    print(table(cells))
    for engine, why in missing.items():
        print(f"missing: {engine}: {why}")
    missed = missed_goals(cells)
    for line in missed:
        print(f"missed: {line}")
    versions = {name: version for worker in present for name, version in worker.versions.items()}
    figures = report(__doc__, cells, missing, versions)
    write_figures(options, figures)
    if options.save:
        draw(plot, figures, PICTURE)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
