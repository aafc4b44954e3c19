"""How fast are launches, kernels that memory bounds and products of matrices on this GPU, beside other packages?

``python bench/hardware.py STAGE --artifacts FOLDER --backend cuda --json FILE`` with the programs that
scripts/device_bundle.py compiled; run.sh of a bundle calls it. Stages: launch, first, kernels, matmul. Answers are
checked; a wrong one is an exit code of 1 and has no figure. The file is written after each problem, and says that it is
unfinished until the last. ``--backend host`` runs small problems without a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from device.checks import HOST  # noqa: E402 - the folders above come first
from device.store import Store  # noqa: E402
from device.summary import where  # noqa: E402
from hardware import first, launches, memory, products  # noqa: E402

STAGES = {"launch": launches.report, "first": first.report, "kernels": memory.report, "matmul": products.report}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--artifacts", type=Path, required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--short", action="store_true", help="small problems, few turns: whether it runs")
    given = parser.parse_args(arguments)
    small = given.short or given.backend == HOST
    store = Store(given.artifacts)
    heading = {"question": (__doc__ or "").splitlines()[0], "stage": given.stage, **where(store, given.backend)}

    def write(found: dict[str, Any], **more: bool) -> None:
        part = given.json.with_suffix(".part")
        part.write_text(json.dumps({**heading, **found, **more}, indent=1) + "\n")
        part.replace(given.json)

    found: dict[str, Any] = {}
    for found in STAGES[given.stage](store, given.backend, "small" if small else "large", 1 if small else given.turns):
        write(found, unfinished=True)
    write(found)
    for name, why in found["missing"].items():
        print(f"not run: {name}: {why}")
    for wrong in found["wrong"]:
        print(f"WRONG {wrong}")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
