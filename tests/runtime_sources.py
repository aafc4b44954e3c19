"""The C files of the runtime, as its CMakeLists.txt lists them."""

from __future__ import annotations

import re
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent.parent / "runtime_c"


def sources() -> list[Path]:
    listed = re.search(r"set\(mgpu_sources([^)]*)\)", (RUNTIME / "CMakeLists.txt").read_text())
    assert listed
    return [RUNTIME / name for name in listed[1].split()]


def object_name(source: Path) -> str:
    """One per file: cuda/memory.c and hip/memory.c are both there."""
    return "-".join(source.relative_to(RUNTIME).with_suffix(".o").parts)
