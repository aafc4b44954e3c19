"""One way to build a program, and how all of them are measured: they take turns."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

NEW, RUNNING, CACHED_NEW, CACHED = "new process", "running process", "cached, new process", "cached, running process"
"""How most ways build. A running process has built something before; a new one has not, but its files are in memory."""


def nothing() -> None:
    """For a way that needs no preparation."""


@dataclass(frozen=True)
class Way:
    """``run`` builds ``program`` with ``tool`` for ``chips``; ``how`` says in which process, and what is there already.

    ``what`` says what is made. ``folder`` is empty when ``run`` is called; afterwards as many files as ``outputs``
    counts match its pattern there. ``prepare`` comes before the clock starts."""

    program: str
    tool: str
    chips: str
    how: str
    what: str
    run: Callable[[], None]
    folder: Path
    outputs: tuple[str, int] = ("*.so", 1)
    prepare: Callable[[], None] = nothing

    @property
    def name(self) -> str:
        """Unlike any other way's."""
        return f"{self.program}, {self.tool}, {self.chips}, {self.how}"

    def take(self) -> float:
        """Builds once and returns the seconds. Raises RuntimeError where what is to be made is not there."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.prepare()
        started = time.perf_counter()
        self.run()
        taken = time.perf_counter() - started
        pattern, count = self.outputs
        made = [path for path in self.folder.rglob(pattern) if path.stat().st_size]
        if len(made) != count:
            raise RuntimeError(f"{self.name}: {len(made)} files {pattern} in {self.folder}, not {count}")
        return taken


@dataclass(frozen=True)
class Skipped:
    """What a tool does not build here, and why."""

    program: str
    tool: str
    why: str


def first_runs(ways: Sequence[Way], ours: str) -> tuple[list[Way], list[Skipped]]:
    """Builds once in every way, which fills the file caches: those that work, and those of peers that do not.

    Raises what a build of the tool ``ours`` raises."""
    working, failing = [], []
    for way in ways:
        try:
            way.take()
        except RuntimeError as error:
            if way.tool == ours:
                raise
            failing.append(Skipped(way.program, f"{way.tool} for {way.chips}", f"it fails here: {error}"))
        else:
            working.append(way)
    return working, failing


def measure(ways: Sequence[Way], runs: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Seconds by the ways' names. Raises RuntimeError where a build fails."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for turn in range(runs):
        say(f"{ways[0].program}, turn {turn + 1} of {runs}")
        for way in ways:
            times[way.name].append(way.take())
    return times
