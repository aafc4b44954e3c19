"""Builds every file of a folder side by side, on so many cores: ``fifty_program.py FROM TO CORES TARGET…``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import offload


def main() -> int:
    sources, folder, cores, *targets = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    offload.build_all(
        {"sources": path, "output": Path(folder) / f"{path.stem}.so", "targets": targets, "cache": False}
        for path in sorted(Path(sources).glob("*.mlir"))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
