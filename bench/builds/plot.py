"""The figures as a picture: how long a build in a new process takes, a side for each program, a row for each tool."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builds.ours import NAME
from builds.toolkit import FIVE_CHIPS
from builds.way import CACHED_NEW, NEW

OURS, CACHED, THEIRS = "#cc79a7", "#0072b2", "#999999"


def plot(report: Mapping[str, Any], path: Path) -> None:
    """Writes an SVG file, the same for the same figures. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "offload", "font.size": 9})
    from matplotlib import pyplot

    programs = {program: rows for program, rows in rows_of(report).items() if rows}
    heights = [len(rows) for rows in programs.values()]
    figure, sides = pyplot.subplots(
        len(programs),
        1,
        figsize=(8, 1.2 + 0.22 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for side, (program, rows) in zip(sides[:, 0], programs.items(), strict=True):
        side.barh(range(len(rows)), [row[1] for row in rows], color=[row[2] for row in rows], height=0.7, zorder=3)
        side.set_yticks(range(len(rows)), [row[0] for row in rows])
        side.invert_yaxis()
        side.grid(axis="x", color="#dddddd", zorder=0)
        side.set_xlim(left=0)
        side.set_title(program, loc="left")
    sides[-1, 0].set_xlabel("seconds of a build in a new process (median)")
    figure.suptitle(f"{report['machine']['processor']}, {report['machine']['cores']} cores", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def rows_of(report: Mapping[str, Any]) -> dict[str, list[tuple[str, float, str]]]:
    """By program: label, seconds and colour of each bar, those of a chip together."""
    found: dict[str, list[tuple[str, float, str]]] = {}
    for way in report["ways"]:
        if way["how"] not in (NEW, CACHED_NEW):
            continue
        cached = way["how"] == CACHED_NEW
        label = f"{way['chips']}: {way['tool']}{', cached' if cached else ''}"
        colour = CACHED if cached else OURS if way["tool"] == NAME else THEIRS
        found.setdefault(way["program"], []).append((label, way["median"], colour))
    for rows in found.values():
        rows.sort(key=lambda row: (row[0].startswith(FIVE_CHIPS), row[0].partition(":")[0], row[1]))
    return found
