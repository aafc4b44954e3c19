"""Compiled programs in a folder, each under its key: written where there is a compiler, read where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import offload
from device.checks import Program
from offload.runtime import Library


class Store:
    """A folder of artifacts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, program: Program) -> Path:
        return self.folder / f"{program.key}.so"

    def load(self, program: Program, backend: str) -> Library:
        """The program's library, on a backend. Raises OffloadError where it was not compiled, or cannot be loaded."""
        path = self.path(program)
        if not path.exists():
            raise offload.OffloadError(
                f"{path.name} is not among the compiled programs in {self.folder}: the tests changed after the bundle "
                "was made; make it again (make device-bundle)"
            )
        library = offload.load(path)
        library.use(backend)
        return library

    def fill(self, programs: Iterable[Program]) -> int:
        """Compiles programs, or takes them from the cache of builds, whose keys hold the compiler too; returns how many
        there are. Raises what a build raises."""
        wanted = {program.key: program for program in programs}
        self.folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self._compile, wanted.values()))
        return len(wanted)

    def _compile(self, program: Program) -> None:
        from offload.compiler import programs
        from offload.compiler.cache import library
        from offload.compiler.output import write_atomically

        request = offload.api.make_request([programs.source(program.text, None)], program.targets, **program.options)
        try:
            data = library(request)
        except offload.OffloadError as error:
            raise type(error)(f"{error}\n(for {', '.join(program.targets)}:)\n{program.text[:2000]}") from error
        write_atomically(self.path(program), data)
