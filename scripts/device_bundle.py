"""Packs one folder that runs the device suite and benchmarks on a machine without a compiler or a network.

``python scripts/device_bundle.py build/device-bundle`` compiles every program of tests/device and bench/hardware and
puts beside them the runtime half as source, tests, benchmarks and ``run.sh``, whose first lines say how to use it. Over
there are needed: a C compiler and Python 3.10 or later with NumPy 2, ml_dtypes, pytest, hypothesis, scikit-build-core,
pybind11, CMake and ninja. ``--only`` takes some checks alone (a regular expression of their names), ``--every`` a part
of them.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from device.checks import Check, Program  # noqa: E402
from device.groups import all_checks, examples, host_programs  # noqa: E402
from device.store import Store  # noqa: E402
from device.suite import PACKED  # noqa: E402
from hardware import launches, ours  # noqa: E402

import offload  # noqa: E402 - the folders above come first

MOST = 40 << 20
"""Bytes that the folder may have."""

SOURCE = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "offload", "targets", "runtime_c")
TESTS = (
    "device", "operations", "conformance", "randomized", "emulator/__init__.py", "emulator/on_device.py", "numeric.py",
    "device_values.py", "expectations.py", "sparse_programs.py", "programs/levels", "compiling.py", "blocks.py",
    "tensor_cases.py", "tosa_lines.py",
    *(f"{name.replace('.', '/')}.py" for name in host_programs.TESTS),
    *(f"programs/{name}.mlir" for name in host_programs.FILES),
)  # fmt: skip
COMPILING = ("operations/ready_images.py", "conformance/replay.py", "randomized/modules.py")
"""Files of these folders that need a compiler."""
BENCHMARKS = (
    "common.py", "hardware.py", "hardware", "peers/hardware", "host/__init__.py", "host/engine.py", "host/problem.py",
    "host/problems.py", "host/tensors.py", "peers/host/iree",
)  # fmt: skip
NOT_PACKED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "build")


def copy(sources: Sequence[str], start: Path, folder: Path) -> None:
    """Copies files and folders from below ``start`` to below ``folder``."""
    for name in sources:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (start / name).is_dir():
            shutil.copytree(start / name, target, ignore=NOT_PACKED)
        else:
            shutil.copyfile(start / name, target)


def commit() -> str:
    """The commit that this was made from; a + says that files differ from it. Empty outside of a repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def pack(folder: Path, programs: Sequence[Program], checks: Sequence[Check], target: Path) -> None:
    """The compiled programs and the checks' names as one archive. All programs hold the same runtime, which only a
    large window finds again."""
    window = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 64 << 20}]
    names = sorted({program.key for program in programs})
    with lzma.open(target, "wb", filters=window) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        modules = dict.fromkeys(check.module for check in checks)
        listed = {module: [check.id for check in checks if check.module == module] for module in modules}
        text = json.dumps(listed).encode()
        entry = tarfile.TarInfo(f"artifacts/{PACKED}")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        for name in names:
            entry = archive.gettarinfo(folder / f"{name}.so", f"artifacts/{name}.so")
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            with (folder / f"{name}.so").open("rb") as file:
                archive.addfile(entry, file)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default="", help="a regular expression that names of checks must have")
    parser.add_argument("--every", type=int, default=1, help="take every so-manieth check alone")
    given = parser.parse_args()
    output: Path = given.output
    if output.exists() and not (output / "bundle.json").exists() and any(output.iterdir()):
        parser.error(f"{output} is not empty and no bundle: name another folder")
    shutil.rmtree(output, ignore_errors=True)
    checks = [check for check in all_checks() if re.search(given.only, check.id)][:: given.every]
    programs = [program for check in checks for program in check.programs]
    programs += [*ours.programs(), launches.program(), examples.program("saxpy")]  # the last for what tells the device
    # Half a gigabyte: not in the user's cache, unless that is named.
    os.environ.setdefault("OFFLOAD_CACHE_DIR", str(ROOT / "build" / "device-cache"))
    print(f"compiling {len({program.key for program in programs})} programs of {len(checks)} checks", flush=True)
    told: dict[str, Any] = {
        "commit": commit(),
        "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "offload": offload.__version__,
        "python": platform.python_version(),
        "checks": len(checks),
    }
    output.mkdir(parents=True, exist_ok=True)
    # First: what is left of a bundle that was not finished may be replaced.
    (output / "bundle.json").write_text(json.dumps(told, indent=1) + "\n")
    copy(SOURCE, ROOT, output / "source")
    copy(TESTS, ROOT / "tests", output / "tests")
    for name in COMPILING:
        (output / "tests" / name).unlink()
    copy(BENCHMARKS, ROOT / "bench", output / "bench")
    copy([path.name for path in (ROOT / "examples").glob("*.mlir")], ROOT / "examples", output / "examples")
    shutil.copy(ROOT / "tests" / "device" / "run.sh", output / "run.sh")
    with tempfile.TemporaryDirectory() as artifacts:
        Store(Path(artifacts)).fill(programs)
        pack(Path(artifacts), programs, checks, output / "artifacts.tar.xz")
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(f"{output}: {size / 1e6:.1f} MB, {len(checks)} checks; ./run.sh says how to use it")
    if size > MOST:
        print(f"that is more than {MOST >> 20} MiB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
