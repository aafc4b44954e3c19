"""Writes docs/operations.md from the cases in tests/operations; ``--check`` only compares."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operations.md"
HEAD = """# Operations

What becomes of each form of each operation, per target. *compiles*: to machine code of the chip (this table is about
compilation: see the README for what has run on hardware). *lowers*: host code alone, the same for all targets, to calls
of the runtime. *runs*: on the CPU, results compared with NumPy's. *refused*: an error at the operation's line that says
why. `tests/kernels/test_operations.py` checks every cell; this page is written by `scripts/docs_operations.py` from the
same cases.

Sparse operations lower for every target: on CUDA and HIP the vendors' libraries compute them, see [sparse](sparse.md).
"""


def render() -> str:
    sys.path.insert(0, str(ROOT / "tests"))
    from operations import CHIPS, all_cases

    names = {"nvvm": "NVIDIA", "rocdl": "AMD", "host": "CPU"}
    lines = [HEAD]
    ordered = sorted(all_cases(), key=lambda case: case.op)
    for dialect, cases in groupby(ordered, key=lambda case: case.op.split(".")[0]):
        lines += [f"\n## {dialect}\n", f"| operation | form | {' | '.join(names[name] for name in CHIPS)} |"]
        lines.append("|---" * (2 + len(CHIPS)) + "|")
        for case in cases:
            cells = [case.cell(name) + (f" ({case.chips[name]})" if name in case.chips else "") for name in CHIPS]
            lines.append(f"| `{case.op}` | {case.form} | {' | '.join(cells)} |".replace("\n", " "))
    return "\n".join(lines) + "\n"


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
