"""The systems that wheels are for: auditwheel's tag, and what decides it."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging_tools import backend, copy_of, run

OLDEST = (2, 28)
"""The glibc of Debian 10 and RHEL 8."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The setuptools example, with images for all targets."""
    folder = tmp_path_factory.mktemp("wheel")
    backend(copy_of("setuptools", folder), "build_wheel", folder / "out", "setuptools.build_meta")
    (path,) = (folder / "out").glob("*.whl")
    return path


def test_what_auditwheel_makes_of_a_wheel(wheel: Path, tmp_path: Path) -> None:
    """A tag as old as may be, and the library as it was: nothing is bundled."""
    run(sys.executable, "-m", "auditwheel", "repair", "-w", tmp_path, wheel, cwd=tmp_path)
    (repaired,) = tmp_path.glob("*.whl")
    tag = re.fullmatch(rf"vectorops-1\.0-py3-none-.*manylinux_(\d+)_(\d+)_{platform.machine()}\.whl", repaired.name)
    assert tag is not None, repaired.name
    assert (int(tag[1]), int(tag[2])) <= OLDEST
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(repaired) as after:
        name = "vectorops/kernels.offload.so"
        assert before.read(name) == after.read(name)


def test_no_function_is_newer(wheel: Path, tmp_path: Path) -> None:
    """Which function a newer tag would be for."""
    with zipfile.ZipFile(wheel) as file:
        library = file.extract("vectorops/kernels.offload.so", tmp_path)
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    ).stdout
    found = re.findall(r"U (\w+)@+GLIBC_(\d+)\.(\d+)", listed)
    assert {"dlopen", "pthread_create"} <= {name for name, _, _ in found}
    assert [(name, major, minor) for name, major, minor in found if (int(major), int(minor)) > OLDEST] == []
