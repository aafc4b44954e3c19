"""The C files of the runtime, as its CMakeLists.txt lists them, and how tests compile them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent.parent / "runtime_c"

COMPILER = shlex.split(os.environ.get("CC", "cc"))
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g1", "-fPIC", "-fvisibility=hidden"]
FLAGS += ["-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{RUNTIME}", "-pthread"]


def sources() -> list[Path]:
    listed = re.search(r"set\(mgpu_sources([^)]*)\)", (RUNTIME / "CMakeLists.txt").read_text())
    assert listed
    return [RUNTIME / name for name in listed[1].split()]


def object_name(source: Path) -> str:
    """One per file: cuda/memory.c and hip/memory.c are both there."""
    return "-".join(source.relative_to(RUNTIME).with_suffix(".o").parts)


def cc(*arguments: object) -> None:
    command = [*COMPILER, *FLAGS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
