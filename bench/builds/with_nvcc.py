"""nvcc, from PATH or from the wheel nvidia-cuda-nvcc: CUDA C++ into a shared library."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from common import call, version_of

from builds.programs import Program
from builds.toolkit import FIVE, FIVE_CHIPS, NVIDIA, chip_of, find_nvcc
from builds.way import NEW, Way

NAME = "nvcc"


def version() -> str | None:
    tool = find_nvcc()
    return version_of(tool) if tool else None


def missing() -> str | None:
    """Why it takes no part; None where it does."""
    return None if find_nvcc() else "no nvcc on PATH, and the wheel nvidia-cuda-nvcc is not installed"


def ways(program: Program, folder: Path) -> list[Way]:
    source = folder / f"{program.name}.cu"
    source.write_text(program.cuda)
    generated = [chip_of(target).removeprefix("sm_") for target in FIVE]
    five = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in generated]
    found = []
    for chips, words in ((chip_of(NVIDIA), [f"-arch={chip_of(NVIDIA)}"]), (FIVE_CHIPS, [*five, "-t0"])):
        place = folder / f"nvcc-{chips.replace(' ', '-')}"
        command = [str(find_nvcc()), "-shared", "-Xcompiler", "-fPIC", *words, str(source)]
        command += ["-o", str(place / "out.so")]
        run = partial(call, command, folder)
        found.append(Way(program.name, NAME, chips, NEW, "a shared library", run, place))
    return found
