"""hipcc, Debian's package of that name: HIP C++ into a shared library."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from common import call, version_of

from builds.programs import NVIDIA_ONLY, Program
from builds.toolkit import AMD, chip_of
from builds.way import NEW, Skipped, Way

NAME = "hipcc"
ENVIRONMENT = {"HIP_PLATFORM": "amd"}
"""Where there is an nvcc too, hipcc would call that."""


def version() -> str | None:
    tool = shutil.which("hipcc")
    return version_of(tool, {**os.environ, **ENVIRONMENT}) if tool else None


def missing() -> str | None:
    """Why it takes no part; None where it does."""
    return None if shutil.which("hipcc") else "no hipcc on PATH: sh scripts/setup_system.sh bench"


def ways(program: Program, folder: Path) -> list[Way | Skipped]:
    if program.hip is None:
        return [Skipped(program.name, NAME, NVIDIA_ONLY)]
    source, place = folder / f"{program.name}.hip", folder / "hipcc"
    source.write_text(program.hip)
    command = ["hipcc", "-x", "hip", "-shared", "-fPIC", f"--offload-arch={chip_of(AMD)}", str(source)]
    command += ["-o", str(place / "out.so")]
    environment = {**os.environ, **ENVIRONMENT}
    return [
        Way(
            program.name,
            NAME,
            chip_of(AMD),
            NEW,
            "a shared library",
            lambda: call(command, folder, environment),
            place,
        )
    ]
