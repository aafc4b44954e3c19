"""What ran where: puts the results of run.sh's stages into one ``summary.json``, with device, driver and versions.

Without stages it says whether there is a device, and which.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import offload
from device.checks import CUDA, HOST
from device.groups.examples import program
from device.store import Store

PACKAGES = (
    "numpy", "ml_dtypes", "torch", "triton", "cupy-cuda12x", "cupy-cuda13x", "jax", "numba", "numba-cuda", "cuda-core",
    "cuda-bindings", "nvidia-cublas", "nvidia-cusparse", "nvidia-cusparselt-cu13",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Of what is installed here, among what the checks and benchmarks use."""
    found = {"offload": offload.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if nvcc := shutil.which("nvcc"):
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
        if match := re.search(r"\bV([\d.]+)", said):
            found["nvcc"] = match[1]
    return found


def driver() -> str:
    """The version of NVIDIA's driver; empty where there is none."""
    if not (tool := shutil.which("nvidia-smi")):
        return ""
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def device(store: Store, backend: str) -> dict[str, Any]:
    """The device that the checks run on. Raises OffloadError where there is none."""
    library = store.load(program("saxpy"), backend)
    return {name: getattr(library.device.info, name) for name in ("backend", "name", "chip", "memory_bytes")}


def where(store: Store, backend: str) -> dict[str, Any]:
    """Date, device, driver and versions: what every file of figures from here begins with."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "device": device(store, backend),
        "driver": driver(),
        "versions": versions(),
    }


def results(path: Path) -> dict[str, Any]:
    """What is told of a stage, by its file; of one that was ended nothing, if it was about to write that."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return {name: found[name] for name in ("groups", "reasons", "missing", "wrong") if name in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--artifacts", type=Path, required=True)
    parser.add_argument("--backend", choices=(CUDA, HOST), required=True)
    for name in ("stages", "out", "bundle"):
        parser.add_argument(f"--{name}", type=Path)
    given = parser.parse_args()
    try:
        store = Store(given.artifacts)
        here = where(store, given.backend)
        if not given.stages:
            store.load(program("saxpy"), given.backend).device.zeros(1, "uint8")  # what opens the device
    except offload.OffloadError as error:
        print(error, file=sys.stderr)
        if not given.stages:
            return 1
        here = {"device": {"backend": given.backend, "name": f"no device: {error}"}, "versions": versions()}
    name = here["device"]["name"]
    if not given.stages:
        print(f"{name}, driver {here['driver']}" if here["driver"] else name)
        return 0
    stages = [json.loads(line) for line in given.stages.read_text().splitlines()]
    stages = [stage | results(given.out / f"{stage['stage']}.json") for stage in stages]
    report = {"bundle": json.loads(given.bundle.read_text()), **here, "stages": stages}
    (given.out / "summary.json").write_text(json.dumps(report, indent=1) + "\n")
    print(name, *(f"{stage['stage']}: exit code {stage['exit_code']}" for stage in stages), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
