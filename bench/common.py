"""What the benchmarks share: their options, what they say about the machine, and how figures are written."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def arguments_of(document: str | None, repeats: str, default: int, unit: str, saved: Path) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has: how many repeats (``--runs``, …), ``--json``, ``--save``."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{repeats}", type=positive, default=default, help=f"{unit} (default: {default})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--save", action="store_true", help=f"write the figures to {saved.parent.name}/{saved.name}")
    parser.set_defaults(saved=saved)
    return parser


def positive(text: str) -> int:
    """A number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """For argparse: names of a list, separated by commas."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are: {', '.join(names)}")
        return chosen

    return parse


def spread(values: Sequence[float], digits: int = 5) -> dict[str, float]:
    """How many values there are, their median, the least and the greatest, for a file of figures."""
    figures = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {"runs": len(values), **{name: round(value, digits) for name, value in figures.items()}}


def draw(plot: Callable[[dict[str, object], Path], None], figures: dict[str, object], picture: Path) -> None:
    """Draws the picture; without matplotlib, takes away one of other figures."""
    try:
        plot(figures, picture)
    except ImportError:
        picture.unlink(missing_ok=True)
        print("missing: the picture: no matplotlib: pip install 'offload[bench]'")
    else:
        print(f"written: {picture}")


def write_figures(options: argparse.Namespace, figures: Mapping[str, object]) -> None:
    """Writes the figures where ``--json`` and ``--save`` say, and says where."""
    for path in filter(None, (options.json, options.saved if options.save else None)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=2) + "\n")
        print(f"written: {path}")


def heading(document: str | None, versions: Mapping[str, str]) -> dict[str, object]:
    """What every file of figures begins with: the question, the date, the machine, the versions."""
    import offload

    return {
        "question": (document or "").splitlines()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"offload": offload.__version__, **versions, "python": platform.python_version()},
    }


def processor() -> str:
    """The processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        name = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if name:
            return name.group(1)
    return platform.processor() or platform.machine()


def call(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Runs a command in a folder. Raises RuntimeError with its output where it fails."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()
        raise RuntimeError(f"exit code {done.returncode} of {shlex.join(command)}\n{said}")


def version_of(tool: Path | str, environment: Mapping[str, str] | None = None) -> str:
    """The first version number that ``--version`` prints (nvcc's: the one after V)."""
    said = subprocess.run([tool, "--version"], env=environment, capture_output=True, text=True, check=False).stdout
    number = re.search(r"\bV(\d+(?:\.\d+)+)", said) or re.search(r"(\d+(?:\.\d+)+)", said)
    return number.group(1) if number else "of unknown version"
