"""Writes docs/settings.md from the table in offload/config.py; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from offload.config import VARIABLES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"


def render() -> str:
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in VARIABLES.items())
    return (
        f"# Settings\n\nEnvironment variables:\n\n| variable | meaning |\n|---|---|\n{rows}\n"
        "Other variables whose names begin with `OFFLOAD_` are not read: `offload doctor` lists those that are set,\n"
        "and each command warns of those that are nearly one of these.\n"
    )


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
