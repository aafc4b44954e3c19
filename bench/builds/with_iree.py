"""iree-compile: a tensor program into a module of IREE's, which has machine code as the others' have."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from importlib import metadata
from pathlib import Path

from common import call

from builds.programs import Program
from builds.toolkit import AMD, CPU, NVIDIA, chip_of, find_toolkit
from builds.way import NEW, Way

NAME = "iree"


def tool() -> str | None:
    """iree-compile of this Python, else of PATH."""
    return shutil.which("iree-compile", path=str(Path(sys.executable).parent)) or shutil.which("iree-compile")


def version() -> str | None:
    try:
        return metadata.version("iree-base-compiler")
    except metadata.PackageNotFoundError:
        return None


def missing() -> str | None:
    """Why it takes no part; None where it does."""
    if tool() is None:
        return "no iree-compile: pip install 'offload[bench]'"
    return None if find_toolkit() else "no CUDA toolkit with ptxas: pip install nvidia-cuda-nvcc nvidia-nvvm"


def ways(program: Program, folder: Path) -> list[Way]:
    source = folder / f"{program.name}.iree.mlir"
    source.write_text(program.iree)
    ptxas = f"{find_toolkit()}/bin/ptxas"
    flags = {
        NVIDIA: [
            "cuda",
            f"--iree-cuda-target={chip_of(NVIDIA)}",
            "--iree-cuda-use-ptxas",
            f"--iree-cuda-use-ptxas-from={ptxas}",
        ],
        AMD: ["rocm", f"--iree-rocm-target={chip_of(AMD)}"],
        CPU: ["llvm-cpu", "--iree-llvmcpu-target-cpu=host"],
    }
    found = []
    for target, (backend, *words) in flags.items():
        if program.hip is None and target != NVIDIA:
            continue  # there is nothing of ours to compare with
        place = folder / f"iree-{backend}"
        command = [str(tool()), f"--iree-hal-target-backends={backend}", *words, str(source)]
        command += ["-o", str(place / "out.vmfb")]
        run = partial(call, command, folder)
        found.append(Way(program.name, NAME, chip_of(target), NEW, "a module", run, place, ("*.vmfb", 1)))
    return found
