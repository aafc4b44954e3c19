"""The figures as a picture: each engine's speed next to ours, a row of dots per kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from host.problem import SIZES
from host.results import OURS

COLOURS = {
    "linalg": "#e69f00",
    "numpy": "#999999",
    "c": "#000000",
    "numba": "#0072b2",
    "pocl": "#009e73",
    "iree": "#d55e00",
}


def plot(report: Mapping[str, Any], path: Path) -> None:
    """Writes an SVG file, the same for the same figures. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "offload", "font.size": 9})
    from matplotlib import pyplot

    figure, sides = pyplot.subplots(1, len(SIZES), figsize=(9, 4.4), sharey=True, layout="constrained")
    for side, size in zip(sides, SIZES, strict=True):
        problems = [each for each in report["problems"] if each["size"] == size]
        for engine, colour in COLOURS.items():
            dots = [(speed_of(each, engine), row) for row, each in enumerate(problems)]
            there = [(speed, row) for speed, row in dots if speed is not None]
            if there:
                side.scatter(*zip(*there, strict=True), s=28, color=colour, label=engine, alpha=0.85, zorder=3)
        side.axvline(1, color="#cc79a7", linewidth=1.5, label=OURS)
        side.set_xscale("log")
        side.xaxis.minorticks_off()
        side.set_yticks(range(len(problems)), [each["kernel"].replace("_", " ") for each in problems])
        side.grid(color="#dddddd", zorder=0)
        side.set_title(f"{size} problems")
        side.set_xlabel("speed, offload = 1 (further right is faster)")
    sides[0].invert_yaxis()
    figure.legend(*sides[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    figure.suptitle(f"{report['machine']['processor']}, {report['machine']['cores']} cores", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def speed_of(problem: Mapping[str, Any], engine: str) -> float | None:
    """An engine's speed as a part of ours."""
    engines = problem["engines"]
    if "median" not in engines.get(engine, {}) or "median" not in engines.get(OURS, {}):
        return None
    return float(engines[OURS]["median"]) / float(engines[engine]["median"])
