"""NVIDIA's nvJitLink library, which makes machine code of PTX as ptxas does, where only the library is installed.

It is called by `nvjitlink_process.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from offload.targets.tools import Found, SearchStep, from_site_packages, search

_MAJORS = (13, 12)


def find(steps: Sequence[SearchStep], remedy: str) -> Found:
    """The library in those places, or in the wheel nvidia-nvjitlink-cu12."""
    names = [f"{folder}/libnvJitLink.so.{major}" for major in _MAJORS for folder in ("lib", "lib64")]
    return search("nvJitLink (CUDA)", names, [*steps, from_site_packages("nvidia/nvjitlink")], remedy)


def is_library(path: Path) -> bool:
    """Whether it is what `find` found, and no program."""
    return path.name.startswith("libnvJitLink.so.")


def command(library: Path, source: Path | str, result: Path, options: Sequence[str]) -> list[str | Path]:
    """The program that makes ``result``, a cubin, of ``source``, PTX, and prints what ptxas would.

    A process of its own, as with ptxas: where the library crashes, it takes no one along."""
    program = Path(__file__).with_name("nvjitlink_process.py")
    return [sys.executable, "-I", program, library, source, result, *options]
