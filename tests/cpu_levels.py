"""Levels of x86-64 that the processor which runs the tests has."""

from __future__ import annotations

import platform
import re
from pathlib import Path

LEVELS = {
    "x86-64": "",
    "x86-64-v2": "cx16 popcnt pni sse4_1 sse4_2 ssse3 lahf_lm",
    "x86-64-v3": "avx avx2 f16c fma movbe bmi1 bmi2 abm",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""Each with the flags, as Linux calls them, that the one before it lacks."""


def levels_here() -> list[str]:
    """From the least on; empty on other architectures."""
    if platform.machine() != "x86_64":
        return []
    listed = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    assert listed
    flags = set(listed[1].split())
    names = []
    for name, needed in LEVELS.items():
        if not flags.issuperset(needed.split()):
            break
        names.append(name)
    return names
