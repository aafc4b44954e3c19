"""Where NVIDIA's tools are, and the chips that every compiler here knows."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

NVIDIA, AMD, CPU = "nvvm:sm_89", "rocdl:gfx90a", "host"
"""One chip each. IREE knows no newer one of NVIDIA's, hipcc of Debian no newer one of AMD's."""
FIVE = ("nvvm:sm_80", "nvvm:sm_86", "nvvm:sm_89", "nvvm:sm_90", "nvvm:sm_100")
FIVE_CHIPS = "five chips"


def chip_of(target: str) -> str:
    """``sm_89`` of ``nvvm:sm_89``."""
    return target.rpartition(":")[2]


def find_nvcc() -> Path | None:
    """nvcc on PATH, else the wheel's."""
    found = shutil.which("nvcc")
    if found:
        return Path(found)
    wheel = wheel_toolkit()
    return wheel / "bin" / "nvcc" if wheel and (wheel / "bin" / "nvcc").exists() else None


def find_toolkit() -> Path | None:
    """The CUDA toolkit that MLIR and IREE are given: the wheels', else the one of CUDA_HOME or of nvcc."""
    nvcc = find_nvcc()
    places = [wheel_toolkit(), *(Path(os.environ[key]) for key in ["CUDA_HOME"] if os.environ.get(key))]
    places += [Path("/usr/local/cuda"), *([nvcc.resolve().parent.parent] if nvcc else [])]
    needed = ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc")
    return next((place for place in places if place and all((place / file).exists() for file in needed)), None)


def wheel_toolkit() -> Path | None:
    """The folder that the wheels nvidia-cuda-nvcc and nvidia-nvvm share."""
    package = importlib.util.find_spec("nvidia")
    roots = package.submodule_search_locations if package else None
    return next((Path(root) / "cu13" for root in roots or [] if (Path(root) / "cu13").is_dir()), None)
