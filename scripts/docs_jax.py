"""Writes docs/jax_programs.md from bench/results/jax_programs.json.

``python bench/jax_programs.py --save`` writes that. Without it, the page says that nothing was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HEAD = """# Programs of JAX

This page is written by `scripts/docs_jax.py` from `bench/results/jax_programs.json`, which
`python bench/jax_programs.py --save` writes; all of its figures are of one run. [Other front ends](frontends.md)
says how such functions get to `offload`, and `bench/frontends` has them.
"""
NOT_MEASURED = "\nNothing was measured yet.\n"
CHECKED = """
## Results

Every program's results beside those that JAX gives, with its sizes in the program and with sizes that only a call says.
*Not lowered* are what JAX cannot trace without sizes, and what IREE's passes refuse or keep in operations of their own.

| run on | sizes | right | wrong | not lowered |
|---|---|---|---|---|
"""
TIMES = """
## Times

Milliseconds of a call on the CPU (`host:native`) with arrays that are there already, medians of {runs} turns, beside
XLA's; the median of the ratios is {median:.2f}, and the goal {goal:.2f}.

| program | offload | XLA | in times XLA's |
|---|---|---|---|
"""


def page(result: Mapping[str, Any] | None) -> str:
    return HEAD + (NOT_MEASURED if result is None else "".join(parts(result)))


def parts(result: Mapping[str, Any]) -> Iterator[str]:
    machine = result["machine"]
    told = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    yield f"\n{machine['processor']}, {machine['cores']} cores, {result['date'][:10]}; {told}.\n"
    yield CHECKED
    for each in result["checked"]:
        where = "the CPU" if each["target"] == "host" else f"an emulated {each['target']}"
        numbers = (str(each["programs"].get(what, 0)) for what in ("right", "wrong", "not lowered"))
        yield f"| {where} | {each['sizes']} | {' | '.join(numbers)} |\n"
    for each in result["wrong"]:
        yield f"\nWrong: {each['program']}: {each['why']}\n"
    if not result["milliseconds"]:
        return
    runs = max(ways["offload"]["runs"] for ways in result["milliseconds"].values())
    yield TIMES.format(runs=runs, median=result["median"], goal=result["goal"])
    for name, ways in result["milliseconds"].items():
        ours, theirs = (ways[way]["median"] for way in ("offload", "xla"))
        yield f"| {name} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} |\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results" / "jax_programs.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "jax_programs.md")
    given = parser.parse_args()
    given.page.write_text(page(json.loads(given.results.read_text()) if given.results.exists() else None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
