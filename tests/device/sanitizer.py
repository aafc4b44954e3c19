"""A part of the suite under NVIDIA's compute-sanitizer, and a planted access out of bounds, which it must find.

Without the tool, or on the CPU, nothing is run and the result says so.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from device.checks import CUDA
from device.groups.faults import PLANTED
from device.suite import chosen
from device.worker import FAILED, NOT_RUN, PASSED

GROUPS = ("examples", "operations", "conformance", "async", "tensor cores", "hopper")
OF_WORDS = re.compile(r"atomic.*\b(i8|i16|f16|bf16)\b|atomics\..*_(i8|i16|f16|bf16)$")
"""Atomic operations of less than a word read the whole of it, and the rest of the last one may be past an array's end:
the hardware takes pages for what is there, the tool arrays."""
SECONDS = 90
"""That either run may take."""
RUN = """
import sys
from pathlib import Path
from device.checks import NotRun
from device.groups import all_checks
from device.store import Store
checks = {check.id: check for check in all_checks()}
store = Store(Path(sys.argv[1]))
for line in sys.stdin:
    check = checks[line.strip()]
    print("running", check.id, flush=True)
    try:
        check.run(*(store.load(program, "cuda") for program in check.programs))
    except NotRun as reason:
        print("not run:", reason, flush=True)
"""


def sanitized(tool: str, folder: Path, names: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs checks in one process under memcheck: exit code 9 where it found something, 124 where it took too long."""
    command = [tool, "--tool", "memcheck", "--error-exitcode", "9", sys.executable, "-c", RUN, str(folder)]
    # What the tool starts ends with it.
    return subprocess.run(
        ["timeout", "-k", "5", str(SECONDS), *command], input="".join(f"{name}\n" for name in names), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False,
    )  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> str:
    """Why a run was no success."""
    late = f"\nit took longer than {SECONDS} s" if done.returncode in (124, 137) else ""
    return done.stdout[-5000:] + late


def results(folder: Path, every: int) -> list[dict[str, Any]]:
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if tool is None:
        return [{"id": "sanitizer", "outcome": NOT_RUN, "why": "no compute-sanitizer"}]
    found: list[dict[str, Any]] = []
    planted = sanitized(tool, folder, [PLANTED])
    if "Device not supported" in planted.stdout:
        return [{"id": "sanitizer", "outcome": NOT_RUN, "why": "compute-sanitizer does not support this device"}]
    seen = "Invalid __global__ write" in planted.stdout
    found.append({"id": PLANTED, "outcome": PASSED if seen else FAILED, "why": "" if seen else told(planted)})
    checks = [
        check for check in chosen(folder, "", 1)
        if check.group in GROUPS and CUDA in check.backends and not check.alone and not check.missing()
        and not OF_WORDS.search(check.id)
    ][::every]  # fmt: skip
    clean = sanitized(tool, folder, [check.id for check in checks])
    right = clean.returncode == 0 and "ERROR SUMMARY: 0 errors" in clean.stdout
    what = f"{len(checks)} checks without a finding"
    found.append({"id": what, "outcome": PASSED if right else FAILED, "why": "" if right else told(clean)})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--artifacts", type=Path, required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--every", type=int, default=20, help="run every so-manieth check alone")
    given = parser.parse_args()
    if given.backend != CUDA:
        found = [{"id": "sanitizer", "outcome": NOT_RUN, "why": f"it is for {CUDA}"}]
    else:
        found = results(given.artifacts, given.every)
    for result in found:
        print(f"{result['outcome']}: {result['id']}\n{result['why']}")
    reasons = [result["why"] for result in found if result["outcome"] == NOT_RUN]
    given.json.write_text(json.dumps({"results": found, "reasons": dict.fromkeys(reasons, 1)}, indent=1) + "\n")
    return int(any(result["outcome"] == FAILED for result in found))


if __name__ == "__main__":
    sys.exit(main())
