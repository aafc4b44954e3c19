"""offload's ways: without a cache and with one, from a new process and from one that runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import call

import offload
from builds.programs import Program, with_other_host_code
from builds.toolkit import AMD, CPU, FIVE, FIVE_CHIPS, NVIDIA, chip_of
from builds.way import CACHED, CACHED_NEW, NEW, RUNNING, Way
from offload.compiler.native import native

NAME = "offload"
STAGES = ("library", "image", "host")


def version() -> str:
    return f"{offload.__version__} with LLVM {native().llvm_version}"


@contextmanager
def cache_at(folder: Path | None) -> Iterator[None]:
    """The cache's folder inside of the ``with``; None for no cache."""
    before = os.environ.get("OFFLOAD_CACHE_DIR")
    os.environ["OFFLOAD_CACHE_DIR"] = str(folder or "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["OFFLOAD_CACHE_DIR"]
        else:
            os.environ["OFFLOAD_CACHE_DIR"] = before


def forget(cache: Path) -> None:
    """Empties the cache; what is known of the tools stays, as in a folder that other programs have used."""
    for stage in STAGES:
        for path in (cache / stage).glob("*"):
            path.unlink()


def new_process(folder: Path, cache: Path | None = None) -> Mapping[str, str]:
    """The environment of a command: bytecode is kept, as of an installed package, whatever this process's flags."""
    given = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return given | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "OFFLOAD_CACHE_DIR": str(cache or "")}


def command_line(source: Path, targets: Sequence[str], output: Path) -> list[str]:
    """``offload build``, as the installed command runs it."""
    begin = [sys.executable, "-c", "import sys; from offload.__main__ import script; sys.exit(script())", "build", "-q"]
    return [*begin, str(source), *(word for target in targets for word in ("-t", target)), "-o", str(output)]


class Ours:
    """The ways of one program, in a folder of their own."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program, self.folder, self.cache = program, folder, folder / "cache"
        self.source, self.changed = folder / f"{program.name}.mlir", folder / "changed" / f"{program.name}.mlir"
        self.changed.parent.mkdir(parents=True)
        self.source.write_text(program.mlir)
        self.changed.write_text(with_other_host_code(program.mlir))

    def ways(self) -> list[Way]:
        """Those without a cache come first, the chips that peers build for among them."""
        one = [NVIDIA] if self.program.hip is None else [NVIDIA, AMD, CPU]
        kinds = [*((chip_of(target), (target,)) for target in one), (FIVE_CHIPS, FIVE)]
        found = [self.way(chips, NEW, targets) for chips, targets in kinds]
        found += [self.way(chips, RUNNING, targets) for chips, targets in kinds]
        chip, there = chip_of(NVIDIA), self.have(NVIDIA)
        return [
            *found,
            self.way(chip, "nothing cached, running process", (NVIDIA,), self.have(), cached=True),
            self.way(FIVE_CHIPS, "four cached, running process", FIVE, self.have(*FIVE[:-1]), cached=True),
            self.way(FIVE_CHIPS, "host code changed, running process", FIVE, self.have(*FIVE), cached=True, other=True),
            self.way(chip, CACHED, (NVIDIA,), there, cached=True),
            self.way(chip, CACHED_NEW, (NVIDIA,), there, cached=True),
        ]

    def way(
        self,
        chips: str,
        how: str,
        targets: Sequence[str],
        prepare: Callable[[], None] = lambda: None,
        cached: bool = False,
        other: bool = False,
    ) -> Way:
        place = self.folder / f"{chips} {how}".replace(" ", "-").replace(",", "")
        output, cache = place / "out.so", self.cache if cached else None
        source = self.changed if other else self.source
        command, environment = command_line(source, targets, output), new_process(self.folder, cache)

        def here() -> None:
            with cache_at(cache):
                offload.build(source, output, targets=targets)

        def there() -> None:
            call(command, self.folder, environment)

        run = there if how in (NEW, CACHED_NEW) else here
        return Way(self.program.name, NAME, chips, how, "a shared library", run, place, prepare=prepare)

    def have(self, *targets: str) -> Callable[[], None]:
        """Makes a cache that has the program for these targets and nothing else."""

        def prepare() -> None:
            forget(self.cache)
            if targets:
                with cache_at(self.cache):
                    offload.build(self.source, self.folder / "prepared.so", targets=targets)

        return prepare
