"""Writes docs/build_times.md from bench/results/build.json and assembling.json.

``python bench/build.py --save`` and ``python bench/assembling.py --save`` write them. Without the first, the page says
that nothing was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# How long builds take

This page is written by `scripts/docs_builds.py` from `bench/results/build.json`, which `python bench/build.py --save`
writes; there is no figure on it that was not measured in one run, and those of the last section in another one.
`bench/build.py` says what each program and each way is. Milliseconds are medians; what a tool makes differs: Triton
makes kernels without host code, MLIR's tools a library that lacks a runtime.
"""
ASSEMBLING = """
## PTX to machine code, in a process and without one

`python bench/assembling.py`, {date}, ptxas {ptxas}. A build has ptxas as a process of its own, which it starts while
the PTX is being made (*started ahead*; milliseconds from the PTX to the end). A library of this process has nothing to
start, and takes as long for many kernels; what it takes to load is not in these figures.

| kernels of | chips at a time | how | ms | ms of processor time |
|---|---|---|---|---|
"""
NOT_MEASURED = "\nNothing was measured yet.\n"
TITLES = {
    "saxpy": "One kernel: saxpy",
    "thirty": "Thirty kernels in one file",
    "matmul": "A product on the matrix units",
    "fifty": "Fifty files",
}


def page(result: Mapping[str, Any] | None, assembling: Mapping[str, Any] | None) -> str:
    if result is None:
        return HEAD + NOT_MEASURED
    machine, versions = result["machine"], result["versions"]
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [HEAD, f"\n{machine['processor']}, {machine['cores']} cores, {result['date'][:10]}; {told}.\n"]
    programs = dict.fromkeys(way["program"] for way in result["ways"])
    parts += [section(program, result) for program in programs]
    if result["skipped"]:
        parts.append("\n## Not measured\n\n")
        parts += [f"* {each['program']}, {each['tool']}: {each['why']}\n" for each in result["skipped"]]
    parts.append("\n## Goals that are missed\n\n")
    parts += [f"* {line}\n" for line in result["missed"]] or ["None.\n"]
    return "".join([*parts, *(assembled(assembling) if assembling else [])])


def assembled(result: Mapping[str, Any]) -> Iterator[str]:
    yield ASSEMBLING.format(date=result["date"][:10], ptxas=result["versions"]["ptxas"])
    for way in result["ways"]:
        wall, processor = (f"{1e3 * way[kind]['median']:.1f}" for kind in ("wall", "processor"))
        yield f"| {way['program']} | {way['chips']} | {way['way']} | {wall} | {processor} |\n"


def section(program: str, result: Mapping[str, Any]) -> str:
    lines = [f"\n## {TITLES.get(program, program)}\n\n"]
    if program in result["five_chips_to_one"]:
        lines.append(f"Five chips take {result['five_chips_to_one'][program]:.2f} of the time for one.\n\n")
    if program == "fifty" and result["two_cores_to_one"] is not None:
        lines.append(f"Two cores are {result['two_cores_to_one']:.2f} times as fast as one.\n\n")
    lines.append("| tool | for | how | ms | in times ours | what is made |\n|---|---|---|---|---|---|\n")
    for way in result["ways"]:
        if way["program"] == program:
            ratio = "" if way["ratio_to_ours"] is None else f"{way['ratio_to_ours']:.2f}"
            cells = (way["tool"], way["chips"], way["how"], f"{1e3 * way['median']:.1f}", ratio, way["what"])
            lines.append("|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n")
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results" / "build.json")
    parser.add_argument("--assembling", type=Path, default=ROOT / "bench" / "results" / "assembling.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "build_times.md")
    given = parser.parse_args()
    results = [json.loads(path.read_text()) if path.exists() else None for path in (given.results, given.assembling)]
    given.page.write_text(page(*results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
