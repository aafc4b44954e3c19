"""What comes out: a table, the goals that are missed, the figures for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from common import heading

from host.engine import ENGINES
from host.measuring import Cell
from host.problem import SIZES
from host.problems import problem

OURS = "offload"
PEERS = ("numba", "pocl", "iree")
"""The engines that ours is compared with; the others are for orientation."""
LOOPS = "c"
MOST_KERNELS = 2 / 3
FLOOR = 0.7


def table(cells: Sequence[Cell]) -> str:
    """Milliseconds per call, and the best peer's time divided by ours: above 1, ours is faster."""
    engines = [name for name in ENGINES if any(cell.engine == name for cell in cells)]
    lines = []
    for size in SIZES:
        rows = by_kernel(cells, size)
        lines.append(f"{size:<12}" + "".join(f"{name:>10}" for name in engines) + f"{'peer/ours':>11} {'C/ours':>7}")
        for kernel, row in rows.items():
            times = "".join(f"{1e3 * row[name].median:>10.3f}" if row[name].turns else f"{'-':>10}" for name in engines)
            lines.append(f"{kernel:<12}{times}{shown(versus_peers(row)):>11} {shown(versus(row, [LOOPS])):>7}")
    return "\n".join(lines)


def shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def by_kernel(cells: Iterable[Cell], size: str) -> dict[str, dict[str, Cell]]:
    """The cells of one size by kernel and engine."""
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if cell.size == size:
            rows.setdefault(cell.kernel, {})[cell.engine] = cell
    return rows


def versus(row: Mapping[str, Cell], others: Iterable[str]) -> float | None:
    """The time of the fastest of others that took part, divided by ours; None where there is nothing to compare."""
    times = [row[name].median for name in others if name in row and row[name].turns]
    return min(times) / row[OURS].median if times and OURS in row else None


def versus_peers(row: Mapping[str, Cell]) -> float | None:
    return versus(row, PEERS)


def missed_goals(cells: Sequence[Cell]) -> list[str]:
    """A line for each goal that is missed."""
    ratios = {kernel: versus_peers(row) for kernel, row in by_kernel(cells, "large").items()}
    known = {kernel: ratio for kernel, ratio in ratios.items() if ratio is not None}
    faster = [kernel for kernel, ratio in known.items() if ratio >= 1]
    missed = [f"{kernel}: {ratio:.2f} of the best peer's speed; the goal is {FLOOR}" for kernel, ratio in known.items() if ratio < FLOOR]
    if len(faster) < MOST_KERNELS * len(known):
        missed.append(f"as fast as the best peer on {len(faster)} of {len(known)} kernels; the goal is two thirds")
    return missed


def report(
    document: str | None, cells: Sequence[Cell], missing: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, object]:
    return {}
