"""Triton: its kernels into machine code alone, without host code, from a new process and from one that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path

from common import call

from builds.programs import Program
from builds.toolkit import AMD, NVIDIA, chip_of
from builds.way import NEW, RUNNING, Way

NAME = "triton"
SCRIPT = Path(__file__).resolve().with_name("triton_program.py")


def version() -> str | None:
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def missing() -> str | None:
    """Why it takes no part; None where it does."""
    return None if version() else "no triton: pip install 'offload[bench]'"


def ways(program: Program, folder: Path) -> list[Way]:
    source = folder / f"{program.name}_triton.py"
    source.write_text(program.triton)
    chips = [(NVIDIA, ["cuda", chip_of(NVIDIA).removeprefix("sm_"), "32"], "*.cubin")]
    if program.hip is not None:
        chips.append((AMD, ["hip", chip_of(AMD), "64"], "*.hsaco"))
    found = []
    for target, words, pattern in chips:
        for how in (NEW, RUNNING):
            place = folder / f"triton-{words[0]}-{how.split()[0]}"
            environment = {
                **os.environ,
                "TRITON_CACHE_DIR": str(place),
                "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            }
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, str(SCRIPT), str(source)]
            run: Callable[[], None] = Server(command, environment, " ".join(words)).compile
            if how == NEW:
                run = partial(call, [*command, *words], folder, environment)
            what = "machine code of the kernels"
            found.append(Way(program.name, NAME, chip_of(target), how, what, run, place, (pattern, program.kernels)))
    return found


class Server:
    """A Python that has Triton imported; it starts with the first call and ends with this process."""

    def __init__(self, command: list[str], environment: dict[str, str], line: str) -> None:
        self.command, self.environment, self.line = command, environment, line
        self.process: subprocess.Popen[str] | None = None

    def compile(self) -> None:
        """Compiles anew. Raises RuntimeError where that process ends, which prints why."""
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self.answer("ready")
        assert self.process.stdin is not None
        print(self.line, file=self.process.stdin, flush=True)
        self.answer("done")

    def answer(self, expected: str) -> None:
        assert self.process is not None and self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        if said != expected:
            raise RuntimeError(f"triton: {' '.join(self.command)} said {said!r}, not {expected!r}")

    def __del__(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()
