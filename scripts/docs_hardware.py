"""Writes docs/hardware.md, and docs/hardware.svg where there are figures, from hardware.json and sass.json of results.

``python scripts/docs_hardware.py --take OUT`` first takes the results that run.sh of a device bundle left in the folder
OUT: what became of the checks, from summary.json, and launch.json, first.json, kernels.json and matmul.json, those that
are there. Results of the CPU, of small problems, or with a wrong answer among them are refused. Without results the
page says that nothing has run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("launch", "first", "kernels", "matmul")
CHECKED = ("suite", "calls", "sanitizer")
WHERE = ("date", "device", "driver", "versions")
PEERS = ("CUDA C++", "torch", "CuPy", "Triton")
LAUNCHERS = ("offload", "C", "cuda.core", "CuPy RawKernel", "Triton", "numba-cuda")

PICTURE = "![Shares of the copy's bandwidth, by kernel and package](hardware.svg)\n"
HEAD = """# On hardware

This page is written by `scripts/docs_hardware.py` from `bench/results/hardware.json`, and of what was read of machine
code from `sass.json` beside it; there is no time or speed on it that was not measured.
`make device-bundle` packs the suite and the benchmarks; on a machine with a GPU, `run.sh all` runs them, and
`python scripts/docs_hardware.py --take OUT` takes the figures over.

* **NVIDIA**: {nvidia}
* **AMD**: not yet run on hardware. Code objects are held to what HIP's loader reads of them
  (`tests/amd/test_amd_code_objects.py`) and executed on an instruction-level emulator (`tests/emulator`: gfx90a,
  gfx942, gfx950, gfx1100, gfx1201, and generic targets on these); the runtime's HIP side runs against a stand-in driver
  and AMD's own library without a device.
"""
NOT_RUN = """not yet run on hardware. Kernels are compiled to machine code, their PTX is executed on an
  instruction-level emulator (`tests/ptx`: sm_75, sm_80, sm_90, sm_100), with most of the checks of `tests/device`, and
  the runtime's CUDA side runs against a stand-in driver. These wait for a GPU: every check of `tests/device` on the
  backend `cuda`, what launches cost, the kernels of `bench/hardware` beside CUDA C++, torch, CuPy and Triton, and
  products of matrices beside cuBLAS."""


def taken(folder: Path) -> dict[str, Any]:
    """The stages' results in a folder. Raises ValueError for those that are no measurement of a GPU."""
    found = {}
    for stage in STAGES:
        path = folder / f"{stage}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        if result["device"]["backend"] == "host":
            raise ValueError(f"{path} ran on host: only what a GPU did belongs here")
        if result["size"] != "large":
            raise ValueError(f"{path} is of {result['size']} problems: run it without SHORT")
        if result["wrong"]:
            raise ValueError(f"{path} has wrong answers: {'; '.join(result['wrong'])}")
        found[stage] = result
    path = folder / "summary.json"
    if path.exists():
        result = json.loads(path.read_text())
        if result["device"]["backend"] == "host":
            raise ValueError(f"{path} ran on host: only what a GPU did belongs here")
        if checked := counts(folder):
            found["checks"] = {
                **{name: result[name] for name in WHERE},
                "commit": result["bundle"]["commit"],
                **checked,
            }
    if not found:
        raise ValueError(f"{folder} has none of {', '.join(f'{stage}.json' for stage in STAGES)}")
    return found


def counts(folder: Path) -> dict[str, Any]:
    """What became of the checks of a folder's stages, by group; why some were not run; names of those that failed."""
    groups: dict[str, dict[str, int]] = {}
    reasons: dict[str, int] = {}
    failed: list[str] = []
    for stage in CHECKED:
        path = folder / f"{stage}.json"
        for result in json.loads(path.read_text())["results"] if path.exists() else ():
            group = result["id"].split("/")[0] if stage != "sanitizer" else "under compute-sanitizer"
            of_group = groups.setdefault(group, {"passed": 0, "failed": 0, "not run": 0})
            of_group[result["outcome"]] += 1
            if result["outcome"] == "not run":
                reasons[result["why"]] = reasons.get(result["why"], 0) + 1
            elif result["outcome"] == "failed":
                failed.append(result["id"])
    return {"groups": groups, "reasons": reasons, "failed": failed} if groups else {}


def where(result: Mapping[str, Any]) -> str:
    """One line: device, driver, date."""
    return f"{result['device']['name']}, driver {result['driver']}, {result['date'][:10]}."


def versions(results: Mapping[str, Any]) -> str:
    """A line for each set of versions, with the parts that it belongs to where there are several."""
    lines: dict[str, list[str]] = {}
    for part, result in results.items():
        told = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        lines.setdefault(told, []).append(part)
    if len(lines) == 1:
        return f"With {next(iter(lines))}.\n"
    return "".join(f"* {', '.join(parts)}: with {told}.\n" for told, parts in lines.items())


def missing(result: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} ({why})" for name, why in result["missing"].items())
    ended = "\nThe stage was ended before its last problem.\n" if result.get("unfinished") else ""
    return ended + (f"\nNot measured: {told}.\n" if told else "")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) + "\n" for line in lines)


def kernels(result: Mapping[str, Any]) -> str:
    rows = []
    for problem in result["problems"]:
        engines = problem["engines"]

        def cell(name: str, engines: Mapping[str, Any] = engines) -> str:
            if name not in engines:
                return ""
            speed = engines[name].get("gigabytes_per_second")
            return f"{speed:.0f} ({speed / result['copy']:.2f})" if speed else "-"

        rate = {name: each["gigabytes_per_second"] for name, each in engines.items() if "median" in each}
        peer = max((speed for name, speed in rate.items() if name in PEERS), default=None)
        ratio = f"{rate['offload'] / peer:.2f}" if peer and "offload" in rate else ""
        rows.append([problem["kernel"], *(cell(name) for name in ("offload", "linalg", *PEERS)), ratio])
    text = table(["kernel", "offload", "offload, linalg", *PEERS, "to the best peer"], rows)
    told = (
        f"GB/s of the bytes that must move; in brackets, shares of a copy's: {result['copy']:.0f} GB/s. The kernels of "
    )
    told += "the second column are written, those of the third made of programs of linalg."
    return f"## Kernels that memory bounds\n\n{where(result)}\n\n{told}\n\n{text}{missing(result)}\n{PICTURE}"


def products(result: Mapping[str, Any]) -> str:
    def ratio(one: float | None, other: float | None) -> str:
        return f"{one / other:.2f}" if one and other else ""

    rows = []
    for problem in result["problems"]:
        speed = {name: each.get("teraflops") for name, each in problem["engines"].items()}
        one, made, other = speed.get("offload"), speed.get("linalg"), speed.get("torch")
        cells = [f"{each:.0f}" if each else "-" for each in (one, made, other)]
        rows.append([problem["kernel"], str(problem["side"]), *cells, ratio(one, other), ratio(made, other)])
    head = ["product", "side", "offload", "offload, linalg", "torch (cuBLAS)", "to cuBLAS", "linalg to cuBLAS"]
    told = "TFLOP/s (of bytes: 10^12 operations) on random numbers, sums in 32 bits; ours write these, cuBLAS the "
    told += "factors' type. Words are multiplied as such, bytes with the second matrix by columns. The kernels of the "
    told += "third column are written, for warpgroups; those of the fourth made of linalg.fill and linalg.matmul, by "
    told += "warps and for every chip from sm_80 on."
    text = f"## Products of matrices\n\n{where(result)}\n\n{told}\n\n{table(head, rows)}"
    if layers := result.get("layers"):
        rows = []
        for problem in layers:
            speed = {name: each.get("gigabytes_per_second") for name, each in problem["engines"].items()}
            made, other = speed.get("linalg"), speed.get("torch")
            cells = [f"{each:.0f}" if each else "-" for each in (made, other)]
            rows.append([problem["kernel"], str(problem["rows"]), *cells, ratio(made, other)])
        head = ["product", "rows", "offload, linalg", "torch (cuBLAS)", "to cuBLAS"]
        told = "GB/s of the weights, of which there are 8192 rows of 8192; few rows meet each of them."
        text += f"\n{told}\n\n{table(head, rows)}"
    return f"{text}{missing(result)}"


def launches(result: Mapping[str, Any]) -> str:
    names = [name for name in LAUNCHERS if any(name in row["engines"] for row in result["problems"])]
    rows = []
    for row in result["problems"]:
        costs = [row["engines"].get(name, {}).get("median") for name in names]
        rows.append([str(row["arrays"]), *(f"{1e6 * cost:.2f}" if cost else "-" for cost in costs)])
    text = table(["arrays", *names], rows)
    return f"## Launches\n\n{where(result)} µs of a launch that nobody waits for.\n\n{text}{missing(result)}"


def first(result: Mapping[str, Any]) -> str:
    (row,) = result["problems"]
    rows = [
        [name, *(f"{1e3 * each[part]:.1f}" for part in ("import", "first"))] for name, each in row["engines"].items()
    ]
    text = table(["package", "until it is ready", "first result"], rows)
    told = "ms in a fresh process: until the device is open; then the first launch, compiled before (ours) or then."
    return f"## The first result\n\n{where(result)}\n\n{told}\n\n{text}{missing(result)}"


def accesses(found: Mapping[str, Any]) -> str:
    """Widths of loads and stores, in bits."""
    return "/".join(str(found[what]) if found[what] else "-" for what in ("widest_load", "widest_store"))


def code(result: Mapping[str, Any]) -> str:
    """What bench/sass.py read of the machine code."""
    rows = []
    for row in result["kernels"]:
        own, other = row["offload"], row.get("nvcc")
        cells = [row["kernel"]]
        for what in ("registers", "spill_bytes", "shared_bytes", "warps"):
            cells.append(f"{own[what]} ({other[what]})" if other else str(own[what]))
        cells.append(f"{accesses(own)} ({accesses(other)})" if other else accesses(own))
        cells.append(f"{own['instructions']} ({other['instructions']})" if other else str(own["instructions"]))
        rows.append(cells)
    header = ["kernel", "registers", "spilled bytes", "workgroup memory", "warps", "load/store", "instructions"]
    versions = result["versions"]
    products = next(row["offload"] for row in result["kernels"] if row["kernel"].startswith("matmul"))
    return f"""## Machine code

Read of the code for sm_90, not measured: `python bench/sass.py --save`, {result["date"][:10]}, CUDA {versions["nvcc"]}.
In brackets the same kernel in CUDA C++ by nvcc. Warps are those that a multiprocessor has room for, of 64; load/store
is the widest access to global memory, in bits.

{table(header, rows)}
The product of matrices issues {products["loop_products"]} instructions m64n256k16 in each step of its loop, at most
{products["between_products"]} others between two of them, and waits for all of them {products["full_waits"]} times in
the loop; {products["bulk_loads"]} bulk loads bring a stage.
"""


def checks(result: Mapping[str, Any]) -> str:
    rows = [
        [group, *(str(each[what]) if each[what] else "" for what in ("passed", "failed", "not run"))]
        for group, each in result["groups"].items()
    ]
    text = table(["checks", "passed", "failed", "not run"], rows)
    reasons: dict[str, int] = {}
    for reason, count in result["reasons"].items():
        short = reason.partition(":")[0]
        reasons[short] = reasons.get(short, 0) + count
    told = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
    told = f"\nNot run: {told}. [Sparse operations](sparse.md) says what is in which library.\n" if told else ""
    failed = f"\nFailed: {', '.join(result['failed'])}.\n" if result["failed"] else ""
    return f"## Checks\n\n{where(result)} Commit {result['commit']}.\n\n{text}{failed}{told}"


WRITERS = {"checks": checks, "launch": launches, "first": first, "kernels": kernels, "matmul": products}


def page(results: Mapping[str, Any], read: Mapping[str, Any]) -> str:
    """``read``: of the machine code, which needs no GPU."""
    last = "\n" + code(read) if read else ""
    if not results:
        return HEAD.format(nvidia=NOT_RUN) + last
    nvidia = "; ".join(dict.fromkeys(f"{each['device']['name']}, {each['date'][:10]}" for each in results.values()))
    parts = [write(results[stage]) for stage, write in WRITERS.items() if stage in results]
    return HEAD.format(nvidia=f"measured on {nvidia}.") + "\n" + versions(results) + "\n" + "\n".join(parts) + last


def plot(result: Mapping[str, Any], path: Path) -> None:
    """Shares of the copy's bandwidth, a row of dots per kernel. The same file for the same figures."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "offload", "font.size": 9})
    from matplotlib import pyplot

    problems = result["problems"][1:]
    figure, side = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name in ("offload", "linalg", *PEERS):
        dots = [
            (problem["engines"][name]["gigabytes_per_second"] / result["copy"], row)
            for row, problem in enumerate(problems)
            if "median" in problem["engines"].get(name, {})
        ]
        if dots:
            side.scatter(*zip(*dots, strict=True), s=60 if name == "offload" else 28, label=name, zorder=3)
    side.set_yticks(range(len(problems)), [problem["kernel"].replace("_", " ") for problem in problems])
    side.set_xlim(left=0)
    side.set_xlabel("share of a copy's bandwidth")
    side.grid(color="#dddddd", zorder=0)
    side.invert_yaxis()
    side.legend(fontsize=8)
    figure.suptitle(f"{result['device']['name']}, {result['date'][:10]}", fontsize=9)
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--take", type=Path, metavar="OUT", help="take the results in this folder first")
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results" / "hardware.json")
    parser.add_argument("--code", type=Path, default=ROOT / "bench" / "results" / "sass.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "hardware.md")
    parser.add_argument("--plot", type=Path, help="write the picture of the kernels there; needs matplotlib")
    given = parser.parse_args()
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    if given.take:
        try:
            results |= taken(given.take)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        given.results.write_text(json.dumps(results, indent=1) + "\n")
    given.page.write_text(page(results, json.loads(given.code.read_text()) if given.code.exists() else {}))
    if given.plot and "kernels" in results:
        plot(results["kernels"], given.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
