"""The environments that the setuptools example has for tox: a build in isolation and its tests, for one target each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from isolated import alone, found
from packaging_tools import copy_of, run

PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}"
TOX = [sys.executable, "-m", "tox", "-q"]


def test_environments_of_tox(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """That of a GPU without its device runs on the CPU; the one that asks for the device, with the same wheel, says why
    it cannot."""
    package = copy_of("setuptools", tmp_path)
    assert f"{PYTHON}-host" in run(*TOX, "list", "--no-desc", "-d", cwd=package).stdout.split()
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    environment = alone(tmp_path) | {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(found(tmp_path_factory)[-1]),
        "LD_LIBRARY_PATH": str(tmp_path),
    }
    names = f"{PYTHON}-nvvm_sm_90,{PYTHON}-nvvm_sm_90-device"
    said = run(*TOX, "run", "-e", names, cwd=package, environment=environment, fails=True).stdout
    assert said.count(" 2 passed in ") == 1
    assert "--offload-require=cuda: this machine has no such device: libcuda.so.1 cannot be loaded" in said
