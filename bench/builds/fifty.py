"""Fifty files: all, one or none of them changed, with a cache; for three targets without one, on one core and two."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from common import call

import offload
from builds.ours import NAME, cache_at, forget, new_process
from builds.programs import SAXPY
from builds.toolkit import AMD, CPU, NVIDIA, chip_of
from builds.way import NEW, Skipped, Way

PROGRAM = "fifty"
FILES = 50
TARGETS = (NVIDIA, AMD, CPU)
SCRIPT = Path(__file__).resolve().with_name("fifty_program.py")
CORES = {1: f"{NEW}, one core", 2: f"{NEW}, two cores"}
ALL, ONE_CHANGED, NONE_CHANGED = (f"{what} compiled, running process" for what in ("all", "one", "none"))


def write(folder: Path) -> list[Path]:
    """The files, no two of which are the same."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"k{number}.mlir" for number in range(FILES)]
    for number, path in enumerate(paths):
        path.write_text(SAXPY.replace("constant 256", f"constant {number + 1}"))
    return paths


def ways(folder: Path) -> list[Way | Skipped]:
    """Those with a cache, then those on one core and two."""
    found: list[Way | Skipped] = [*cached_ways(folder)]
    if len(os.sched_getaffinity(0)) < max(CORES):
        return [*found, Skipped(PROGRAM, NAME, "this process has one core only: two are not compared with one")]
    return [*found, *(on_cores(folder, cores, how) for cores, how in CORES.items())]


def cached_ways(folder: Path) -> list[Way]:
    sources, cache = write(folder / "fifty"), folder / "fifty-cache"
    place = folder / "fifty-out"

    def build() -> None:
        with cache_at(cache):
            jobs = [{"sources": path, "output": place / f"{path.stem}.so", "targets": [NVIDIA]} for path in sources]
            offload.build_all(jobs)

    def prepare(changes: int) -> Callable[[], None]:
        def run() -> None:
            write(folder / "fifty")
            forget(cache)
            if changes < FILES:
                build()
                shutil.rmtree(place)
                place.mkdir()
            if changes == 1:
                sources[7].write_text(SAXPY.replace("constant 256", "constant 999"))

        return run

    what, counted = "fifty shared libraries", {ALL: FILES, ONE_CHANGED: 1, NONE_CHANGED: 0}
    return [
        Way(PROGRAM, NAME, chip_of(NVIDIA), how, what, build, place, ("*.so", FILES), prepare(changes))
        for how, changes in counted.items()
    ]


def on_cores(folder: Path, cores: int, how: str) -> Way:
    write(folder / "fifty-each")
    place = folder / f"fifty-{cores}"
    command = [sys.executable, str(SCRIPT), str(folder / "fifty-each"), str(place), str(cores), *TARGETS]
    given = new_process(folder)
    chips, what = " ".join(map(chip_of, TARGETS)), "fifty shared libraries"
    return Way(PROGRAM, NAME, chips, how, what, lambda: call(command, folder, given), place, ("*.so", FILES))


def on_two_cores(medians: dict[str, float], ways: Sequence[Way]) -> float | None:
    """How much faster two cores are than one; None where that was not measured."""
    by_how = {way.how: medians[way.name] for way in ways if way.program == PROGRAM and way.name in medians}
    if not all(how in by_how for how in CORES.values()):
        return None
    return by_how[CORES[1]] / by_how[CORES[2]]
