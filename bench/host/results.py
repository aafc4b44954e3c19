"""What comes out: ratios, the goals that are missed, a table, the figures for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from common import heading

from host.engine import ENGINES
from host.measuring import Cell
from host.problem import SIZES

OURS = "offload"
PEERS = ("numba", "pocl", "iree")
"""The engines that ours is compared with; the others are for orientation."""
LOOPS = "c"
YARDSTICK = "copy"
"""What measures the machine's bandwidth: the C engine copies an array."""

WITH_BARRIERS = (
    "softmax", "layer_norm", "transpose", "histogram", "reduction", "scan", "matmul", "n_body",
)  # fmt: skip
MOST_KERNELS = 2 / 3
"""The share of kernels on which ours is at least as fast as the best peer."""
FLOOR = 0.7
"""The least speed of ours on any kernel, as a part of the best peer's."""
LOOPS_FLOOR = 0.5
"""The least speed of ours on a kernel with barriers, as a part of the C loops'."""
BANDWIDTH = 0.9
"""The least bandwidth of ours in the triad, as a part of the copy's."""

Row = Mapping[str, Cell]


def rows_of(cells: Iterable[Cell], size: str) -> dict[str, dict[str, Cell]]:
    """The cells of one size by kernel and engine, without the yardstick."""
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if cell.size == size and cell.kernel != YARDSTICK:
            rows.setdefault(cell.kernel, {})[cell.engine] = cell
    return rows


def best(row: Row, others: Iterable[str]) -> Cell | None:
    """The fastest of others; None where none took part."""
    there = [row[name] for name in others if name in row and row[name].turns]
    return min(there, key=lambda cell: cell.median, default=None)


def speed(row: Row, others: Iterable[str]) -> float | None:
    """Our speed as a part of the fastest of others'; None where there is nothing to compare."""
    other = best(row, others)
    return other.median / row[OURS].median if other and OURS in row else None


def bandwidth(cells: Iterable[Cell]) -> float | None:
    """Our bandwidth in the triad as a part of the copy's, both of the least traffic; None without one of them."""
    moved = {
        cell.kernel: cell.traffic / cell.median
        for cell in cells
        if cell.turns and cell.size == "large" and (cell.kernel, cell.engine) in (("triad", OURS), (YARDSTICK, LOOPS))
    }
    return moved["triad"] / moved[YARDSTICK] if len(moved) == 2 else None


def missed_goals(cells: Sequence[Cell]) -> list[str]:
    """A line for each goal that is missed, on the large problems."""
    rows = rows_of(cells, "large")
    versus = {kernel: speed(row, PEERS) for kernel, row in rows.items()}
    known = {kernel: ratio for kernel, ratio in versus.items() if ratio is not None}
    missed = [
        f"{kernel}: {ratio:.2f} of the speed of {named(rows[kernel])}; the goal is {FLOOR}"
        for kernel, ratio in known.items()
        if ratio < FLOOR
    ]
    faster = sum(ratio >= 1 for ratio in known.values())
    if faster < MOST_KERNELS * len(known):
        missed.append(f"as fast as the best peer on {faster} of {len(known)} kernels; the goal is two thirds")
    for kernel in WITH_BARRIERS:
        ratio = speed(rows.get(kernel, {}), [LOOPS])
        if ratio is not None and ratio < LOOPS_FLOOR:
            missed.append(f"{kernel}: {ratio:.2f} of the speed of the C loops; the goal is {LOOPS_FLOOR}")
    part = bandwidth(cells)
    if part is not None and part < BANDWIDTH:
        missed.append(f"triad: {part:.2f} of the bandwidth of a copy; the goal is {BANDWIDTH}")
    return missed


def named(row: Row) -> str:
    """The fastest peer's name."""
    peer = best(row, PEERS)
    return peer.engine if peer else "no peer"


def table(cells: Sequence[Cell]) -> str:
    """Milliseconds per call; our speed as a part of the best peer's and of the C loops' (above 1, ours is faster)."""
    engines = [name for name in ENGINES if any(cell.engine == name for cell in cells)]
    lines = []
    for size in SIZES:
        lines.append(f"{size:<12}" + "".join(f"{name:>10}" for name in engines) + f"{'/ peer':>8} {'/ C':>7}")
        for kernel, row in rows_of(cells, size).items():
            times = "".join(milliseconds(row.get(name)) for name in engines)
            lines.append(f"{kernel:<12}{times}{shown(speed(row, PEERS)):>8} {shown(speed(row, [LOOPS])):>7}")
    part = bandwidth(cells)
    if part is not None:
        lines.append(f"triad: {part:.2f} of the bandwidth of a copy")
    return "\n".join(lines)


def milliseconds(cell: Cell | None) -> str:
    return f"{1e3 * cell.median:>10.3f}" if cell and cell.turns else f"{'-':>10}"


def shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def report(
    document: str | None, cells: Sequence[Cell], missing: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, object]:
    """The figures with what they were measured on, for JSON. Times are in seconds, traffic in bytes."""
    part = bandwidth(cells)
    return {
        **heading(document, versions),
        "runs": max((len(cell.turns) for cell in cells), default=0),
        "engines": [name for name in ENGINES if any(cell.engine == name for cell in cells)],
        "goals": {
            "speed_to_best_peer": FLOOR,
            "share_of_kernels_at_least_as_fast": round(MOST_KERNELS, 4),
            "speed_to_c_with_barriers": LOOPS_FLOOR,
            "triad_bandwidth_to_copy": BANDWIDTH,
        },
        "missed": missed_goals(cells),
        "copy": next((figures(cell) for cell in cells if cell.kernel == YARDSTICK), None),
        "triad_bandwidth_to_copy": rounded(part),
        "problems": [problem_figures(row) for size in SIZES for row in rows_of(cells, size).values()],
        "missing": [{"name": name, "why": why} for name, why in missing.items()],
    }


def problem_figures(row: Row) -> dict[str, object]:
    cell = next(iter(row.values()))
    peer = best(row, PEERS)
    return {
        "kernel": cell.kernel,
        "size": cell.size,
        "best_peer": peer.engine if peer else None,
        "speed_to_best_peer": rounded(speed(row, PEERS)),
        "speed_to_c": rounded(speed(row, [LOOPS])),
        "engines": {name: figures(row[name]) for name in ENGINES if name in row},
    }


def figures(cell: Cell) -> dict[str, object]:
    """Of one cell: bandwidth and rate are those of the least traffic and the operations that the problem has."""
    if not cell.turns:
        return {"left_out": cell.why}
    return {
        "median": round(cell.median, 9),
        "min": round(min(cell.turns), 9),
        "max": round(max(cell.turns), 9),
        "gigabytes_per_second": round(cell.traffic / cell.median / 1e9, 3),
        "gigaops_per_second": round(cell.operations / cell.median / 1e9, 3),
    }


def rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 4)
