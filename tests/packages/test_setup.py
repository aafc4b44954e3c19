"""Systems that name things otherwise: ``scripts/setup_system.sh`` with stand-ins for their package tools, and where
AMD's device libraries are found there.
"""

import os
import subprocess
from pathlib import Path

import pytest
from compiling import ROOT
from offload.targets import tools
from offload.targets.rocdl import RocdlTarget

SCRIPT = ROOT / "scripts" / "setup_system.sh"
TOOLS = {
    "dpkg-query": 'for name; do :; done; grep -qx "$name" installed && echo "install ok installed"',
    "apt-cache": 'grep -qx "$2" known',
    "apt-get": 'case "$1" in update) cp offered known ;; install) echo "$@" >asked ;; esac',
    "id": "echo 0",
    "uname": "echo riscv64",
}
# fmt: off
NEEDED = [
    "libmlir-22-dev", "mlir-22-tools", "llvm-22-dev", "llvm-22-tools", "liblld-22-dev", "lld-22", "clang-22",
    "libamdhip64-dev", "libclang-rt-22-dev", "g++", "make", "binutils", "python3-venv", "python3-dev",
]
# fmt: on


def run(folder: Path, *, installed: list[str], offered: list[str]) -> subprocess.CompletedProcess[str]:
    for name, text in TOOLS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    for name, packages in (("installed", installed), ("offered", offered), ("known", [])):
        (folder / name).write_text("\n".join([*packages, ""]))
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(["sh", SCRIPT], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("library", ["rocm-device-libs", "rocm-device-libs-17", "rocm-device-libs-21"])
def test_device_libraries_have_the_name_of_the_release(library: str, tmp_path: Path) -> None:
    result = run(tmp_path, installed=NEEDED, offered=[library])
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "asked").read_text().split()[-1] == library
    assert run(tmp_path, installed=[*NEEDED, library], offered=[]).stdout == ""  # all is there: nothing is asked for


def test_the_newest_device_libraries_are_taken(tmp_path: Path) -> None:
    run(tmp_path, installed=NEEDED, offered=["rocm-device-libs-17", "rocm-device-libs-21", "rocm-device-libs-23"])
    assert (tmp_path / "asked").read_text().split()[-1] == "rocm-device-libs-21"


def test_what_no_source_has_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, installed=NEEDED[1:], offered=["rocm-device-libs"])
    assert result.returncode == 1
    assert result.stderr.startswith("setup: no package source here has libmlir-22-dev\n")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("version", [17, 21])
def test_device_libraries_of_newer_systems(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """Debian 13 and later have them in the folder of the LLVM that made them."""
    home = Path(f"/usr/lib/llvm-{version}/lib/clang/{version}")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setattr(tools, "_is_there", lambda path: path in (home, home / "amdgcn/bitcode/ocml.bc"))
    ocml, ockl = RocdlTarget.toolkit()
    assert (ocml.path, ocml.via) == (home / "amdgcn/bitcode/ocml.bc", str(home))
    assert f"{home}: {home}/amdgcn/bitcode/ockl.bc" in ockl.looked
