"""The example packages built in isolation, as pip does by default, and installed with what they declare."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from local_wheels import pack_all
from offload.targets import registry
from packaging_tools import EXAMPLES, clean_venv, copy_of, run

TOOLS = ("setuptools", "pytest")
MORE_TOOLS = ("hatchling", "scikit-build-core", "meson-python", "pybind11", "cmake", "ninja")
FULL = ("setuptools", "hatchling", "scikit_build_core", "meson_python", "pybind11")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", FULL if metafunc.config.getoption("--full") else FULL[:1])


@pytest.fixture(scope="module")
def index(full: bool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheels of offload, of the build tools and of pytest."""
    return pack_all((*TOOLS, *MORE_TOOLS) if full else TOOLS, tmp_path_factory.mktemp("index") / "wheels")


def alone(folder: Path) -> dict[str, str]:
    """Settings for builds that see nothing of this environment but NVIDIA's tools."""
    (ptxas,) = (found for found in registry().get("nvvm").toolkit() if found.what.startswith("ptxas"))
    assert ptxas.path is not None
    return {
        "PYTHONPATH": "",
        "CUDA_HOME": str(ptxas.path.parent.parent),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "OFFLOAD_CACHE_DIR": str(folder / "cache"),
    }


def test_in_isolation(name: str, index: Path, tmp_path: Path) -> None:
    package = copy_of(name, tmp_path)
    pip = [sys.executable, "-m", "pip"]
    found = ["--no-index", "--find-links", index]
    environment = alone(tmp_path)
    said = run(*pip, "wheel", "-v", "--no-deps", *found, "-w", "out", package, cwd=tmp_path, environment=environment)
    assert "Installing build dependencies" in said.stdout
    (wheel,) = (tmp_path / "out").glob("*.whl")
    python = clean_venv(tmp_path / "venv", sees=False)
    wanted = [wheel, "offload", "pytest"]
    run(*pip, "--python", python, "install", "--no-compile", *found, *wanted, cwd=tmp_path, environment=environment)
    tests = EXAMPLES / name / "tests"
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tests, tests]
    ran = run(*command, cwd=tmp_path, environment={**environment, "OFFLOAD_BACKEND": "host"}).stdout
    assert " passed in " in ran
    assert "not run" not in ran
    where = "import offload, sys; print(offload.__file__.startswith(sys.prefix))"
    assert run(python, "-c", where, cwd=tmp_path, environment=environment).stdout == "True\n"


def test_environments_of_tox(full: bool, index: Path, tmp_path: Path) -> None:
    """The example's tox.ini: listed by tox, and (--full) the CPU's environment and one without its device run."""
    package = copy_of("setuptools", tmp_path)
    tox = [sys.executable, "-m", "tox", "-q"]
    python = f"py{sys.version_info[0]}{sys.version_info[1]}"
    assert f"{python}-host" in run(*tox, "list", "--no-desc", "-d", cwd=package).stdout.split()
    if full:
        environment = {**alone(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
        names = f"{python}-host,{python}-nvvm_sm_90"
        said = run(*tox, "run", "-e", names, cwd=package, environment=environment).stdout
        assert said.count(" 2 passed in ") == 2
        nowhere = {**environment, "LD_LIBRARY_PATH": str(tmp_path)}
        (tmp_path / "libcuda.so.1").write_bytes(b"")
        said = run(
            *tox, "run", "-e", f"{python}-nvvm_sm_90-device", cwd=package, environment=nowhere, fails=True
        ).stdout
        assert "--offload-require=cuda: this machine has no such device: libcuda.so.1 cannot be loaded" in said
