"""What the tests of packages share: the example packages, builds of them, and environments to install them into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
from compiling import ROOT

import offload
import offload.artifact

EXAMPLES = ROOT / "examples" / "packages"
TARGETS = ["nvvm:sm_90", "rocdl:gfx942", "host"]
QUICK_CXX = {"CMAKE_CXX_FLAGS_RELEASE": "-O0", "CMAKE_INTERPROCEDURAL_OPTIMIZATION": "OFF"}
"""Definitions for CMake: an optimised pybind11 module takes as long as all that is tested of it."""


def copy_of(name: str, folder: Path) -> Path:
    """A copy of an example package to build in, so that the sources stay as they are."""
    return Path(shutil.copytree(EXAMPLES / name, folder / name))


def run(
    *arguments: str | Path, cwd: Path, environment: dict[str, str] | None = None, fails: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder; ``fails`` says whether it is to."""
    # CMake, where it was installed by pip, is beside this Python.
    given = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **(environment or {})}
    done = subprocess.run(
        [shutil.which(str(arguments[0]), path=given["PATH"]) or str(arguments[0]), *map(str, arguments[1:])],
        cwd=cwd,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode != 0) == fails, done.stdout
    return done


def configure(source: Path, *options: str, fails: bool = False) -> str:
    """Configures a project of CMake in its folder ``build``."""
    found = run(sys.executable, "-m", "offload.cmake", cwd=source).stdout.strip()
    command = ("cmake", "-S", source, "-B", source / "build", f"-DOffload_DIR={found}")
    return run(*command, f"-DOFFLOAD_PYTHON={sys.executable}", *options, cwd=source, fails=fails).stdout


def backend(package: Path, hook: str, folder: Path, backend: str, settings: str = "None", **given: object) -> str:
    """Calls a hook of a PEP 517 backend as pip does, without pip; returns what it said."""
    code = f"import sys, importlib; importlib.import_module({backend!r}).{hook}(sys.argv[1], {settings})"
    folder.mkdir(exist_ok=True)
    return run(sys.executable, "-c", code, folder, cwd=package, **given).stdout  # type: ignore[arg-type]


def clean_venv(folder: Path, sees: bool = True) -> Path:
    """The Python of a new environment. It ``sees`` the offload under test, NumPy and pytest, wherever they are, or
    nothing."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    if not sees:
        return folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    seen = [Path(str(module.__file__)).parent.parent for module in (offload, numpy, pytest)]
    (site / "under_test.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(seen)))
    return folder / "bin" / "python"


def in_venv(python: Path, *arguments: str | Path, cwd: Path) -> str:
    """Runs the Python of an environment, which sees nothing of this one's settings."""
    clean = {"PYTHONPATH": "", "OFFLOAD_BACKEND": "host"}
    return run(python, *arguments, cwd=cwd, environment=clean).stdout


def install(python: Path, *what: str | Path, cwd: Path) -> None:
    """Installs wheels with this environment's pip."""
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", *what, cwd=cwd)


def unpack(wheel: Path, python: Path) -> None:
    """Installs a wheel of plain files into an environment as an installer would, in a hundredth of the time."""
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)


def names(wheel: Path) -> set[str]:
    """The files of a wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as file:
        return {name for name in file.namelist() if ".dist-info/" not in name}


def images(wheel: Path, folder: Path) -> list[str]:
    """The targets in the library of a wheel that has one."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".offload.so"))
        path = file.extract(name, folder)
    return [f"{image.target}:{image.chip}" for image in offload.artifact.read(path).images]
