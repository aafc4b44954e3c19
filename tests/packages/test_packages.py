"""The example packages: built by pip in isolation, installed with what they declare, their own tests run there."""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from isolated import FRONT_ENDS, alone, installed, python_with_offload
from packaging_tools import EXAMPLES, TARGETS, copy_of, images, names, run

LINUX = f"linux_{platform.machine()}"
Factory = pytest.TempPathFactory


def test_every_example_is_built() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {*FRONT_ENDS, "cmake_cpp"}


def test_the_commands_that_the_readme_names(tmp_path: Path) -> None:
    """Where offload is installed they need no index; a folder's name alone would be that of a package there."""
    folder = Path(shutil.copytree(EXAMPLES, tmp_path / "packages"))
    lines = (folder / "README.md").read_text().splitlines()
    commands = [line.removeprefix("$ ").partition("  #")[0] for line in lines if line.startswith("$ ")]
    assert [command.split()[0] for command in commands] == ["pip", "cmake"]
    for command in commands:
        run("sh", "-ec", command, cwd=folder, environment={"PIP_NO_INDEX": "1"})
    assert [path.name for path in folder.glob("*.whl")] == [f"vectorops-1.0-py3-none-{LINUX}.whl"]


@pytest.mark.parametrize("name", FRONT_ENDS)
def test_in_isolation(name: str, tmp_path_factory: Factory) -> None:
    package = installed(tmp_path_factory, name)
    assert "Installing build dependencies" in package.said
    # What is declared is there, and nothing of this environment: kernels in an extension module need no offload.
    where = "import importlib.util, sys; found = importlib.util.find_spec('offload'); print(found and found.origin)"
    origin = package.run("-c", where).strip()
    assert origin == "None" if name == "pybind11" else origin.startswith(str(package.python.parents[1]))
    tests = EXAMPLES / name / "tests"
    ran = package.run("-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tests, tests)
    assert " passed in " in ran
    assert "not run" not in ran
    assert "skipped" not in ran


@pytest.mark.parametrize("name", ["setuptools", "hatchling", "scikit_build_core"])
def test_kernels_alone_are_for_every_python(name: str, tmp_path_factory: Factory, tmp_path: Path) -> None:
    built = installed(tmp_path_factory, name)
    wheel = built.wheel
    assert wheel.name.endswith(f"-1.0-py3-none-{LINUX}.whl")
    package = wheel.name.split("-")[0]
    assert {f"{package}/kernels.{suffix}" for suffix in ("py", "pyi", "offload.so")} <= names(wheel)
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = (entry for entry in file.namelist() if entry.endswith(".dist-info/WHEEL"))
        assert "Root-Is-Purelib: false" in file.read(metadata).decode()
    made = images(wheel, tmp_path)
    assert {entry.split(":")[0] for entry in made} == {target.split(":")[0] for target in TARGETS}
    assert f"{package}.kernels: kernels.offload.so, " in built.said
    assert "nvvm:sm_90 " in built.said


def test_an_extension_module_is_for_one_python(tmp_path_factory: Factory) -> None:
    built = installed(tmp_path_factory, "pybind11")
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert built.wheel.name == f"unitvec-1.0-{version}-{version}-{LINUX}.whl"
    assert "unitvec/libunitvec_kernels.so" in names(built.wheel)
    assert "rocdl:gfx942 " in built.said


def test_an_import_is_quick_and_loads_nothing(tmp_path_factory: Factory) -> None:
    code = """
import pathlib, sys, time
maps = pathlib.Path("/proc/self/maps")
best = 1.0
for _ in range(5):
    for name in [name for name in sys.modules if name.split(".")[0] == "vectorops"]:
        del sys.modules[name]
    started = time.perf_counter()
    import vectorops.kernels
    best = min(best, time.perf_counter() - started)
print(best * 1000)
print([name for name in sys.modules if name.split(".")[0] in ("offload", "numpy", "ctypes")])
print("kernels.offload" in maps.read_text(), dir(vectorops.kernels))
from vectorops.kernels import saxpy
print(saxpy is vectorops.kernels.saxpy, vectorops.kernels.library.functions["saxpy"] is saxpy, saxpy.__doc__)
print("kernels.offload" in maps.read_text(), "libcuda" in maps.read_text(), "libamdhip64" in maps.read_text())
vectorops.kernels.saxpi
"""
    said = installed(tmp_path_factory, "setuptools").run("-u", "-c", code, fails=True)
    took, *lines = said.splitlines()
    assert float(took) < 10
    assert lines[:4] == [
        "[]",
        "False ['library', 'saxpy', 'scale']",
        "True True saxpy(a: float32, x: float32[n], y: float32[m]) -> None",
        "True False False",
    ]
    missing = "AttributeError: module 'vectorops.kernels' has no attribute 'saxpi'; it has: library, saxpy, scale"
    assert lines[-1].startswith(missing)


def test_a_program_of_cmake(tmp_path_factory: Factory, tmp_path: Path) -> None:
    """With offload from a wheel, and CMake; then an installation in which nothing of Python is needed."""
    environment = alone(tmp_path)

    def said(*arguments: str | Path) -> str:
        return run(*arguments, cwd=tmp_path, environment=environment).stdout

    source = copy_of("cmake_cpp", tmp_path)
    build = tmp_path / "build"
    python = python_with_offload(tmp_path_factory, tmp_path)
    found = said(python, "-m", "offload.cmake").strip()
    said("cmake", "-S", source, "-B", build, f"-DOffload_DIR={found}", f"-DOFFLOAD_PYTHON={python}",
         f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}")  # fmt: skip
    assert "rocdl:gfx942 " in said("cmake", "--build", build)
    assert "Compiling" not in said("cmake", "--build", build)
    said("ctest", "--test-dir", build, "--output-on-failure")
    (source / "saxpy.mlir").write_text((source / "saxpy.mlir").read_text().replace("mulf", "divf"))
    assert "Compiling kernels of vector_kernels" in said("cmake", "--build", build)
    said("cmake", "--install", build)
    clean = {"OFFLOAD_BACKEND": "host", "PATH": ""}
    done = run(tmp_path / "installed" / "bin" / "saxpy", cwd=tmp_path, environment=clean, fails=True)
    assert done.stdout == "y[0] is inf\n"  # 2 / 0 + 1: the changed kernel
    headers = {path.relative_to(tmp_path / "installed" / "include") for path in (tmp_path / "installed").rglob("*.h")}
    assert set(map(str, headers)) == {"vector_kernels.h", "mgpu.h", "offload/memref.h"}


def test_cmake_finds_no_offload_in_that_python(tmp_path: Path) -> None:
    found = run(sys.executable, "-m", "offload.cmake", cwd=tmp_path).stdout.strip()
    done = run("cmake", "-S", copy_of("scikit_build_core", tmp_path), "-B", "build", f"-DOffload_DIR={found}",
               "-DOFFLOAD_PYTHON=/bin/false", cwd=tmp_path, fails=True)  # fmt: skip
    said = " ".join(done.stdout.split())
    assert "the Python that would compile kernels has no offload: '/bin/false'." in said
    assert "-DOFFLOAD_PYTHON=" in said
