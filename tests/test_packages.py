"""The example packages: built by pip, installed into an environment of their own, their own tests run there."""

from __future__ import annotations

import platform
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging_tools import EXAMPLES, TARGETS, clean_venv, copy_of, images, in_venv, install, names, pip_wheel, run

PYTHON_PACKAGES = ("setuptools", "hatchling", "scikit_build_core", "meson_python", "pybind11")
LINUX = f"linux_{platform.machine()}"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """The wheel of each example, and what its build said."""
    folder = tmp_path_factory.mktemp("wheels")

    def build(name: str) -> tuple[Path, str]:
        return pip_wheel(copy_of(name, folder), folder / f"{name}-wheel")

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(PYTHON_PACKAGES, pool.map(build, PYTHON_PACKAGES), strict=True))


@pytest.fixture(scope="module")
def installed(wheels: dict[str, tuple[Path, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which they all are."""
    folder = tmp_path_factory.mktemp("installed")
    python = clean_venv(folder / "venv")
    install(python, *(wheel for wheel, _ in wheels.values()), cwd=folder)
    return python


def test_every_example_is_built() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == {*PYTHON_PACKAGES, "cmake_cpp"}


def test_their_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    tests = [path for name in PYTHON_PACKAGES for path in sorted((EXAMPLES / name / "tests").glob("test_*.py"))]
    assert len(tests) == len(PYTHON_PACKAGES)
    said = in_venv(
        installed, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--rootdir", EXAMPLES, *tests, cwd=tmp_path
    )
    for path in tests:
        assert f"/{path.name}::" in said
    assert "7 passed" in said
    assert "skipped" not in said


@pytest.mark.parametrize("name", ["setuptools", "hatchling", "scikit_build_core"])
def test_kernels_alone_are_for_every_python(name: str, wheels: dict[str, tuple[Path, str]], tmp_path: Path) -> None:
    wheel, said = wheels[name]
    assert wheel.name.endswith(f"-1.0-py3-none-{LINUX}.whl")
    package = wheel.name.split("-")[0]
    assert {f"{package}/kernels.{suffix}" for suffix in ("py", "pyi", "offload.so")} <= names(wheel)
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = (entry for entry in file.namelist() if entry.endswith(".dist-info/WHEEL"))
        assert "Root-Is-Purelib: false" in file.read(metadata).decode()
    made = images(wheel, tmp_path)
    assert {entry.split(":")[0] for entry in made} == {target.split(":")[0] for target in TARGETS}
    assert f"{package}.kernels: kernels.offload.so, " in said
    assert "nvvm:sm_90 " in said


def test_an_extension_module_is_for_one_python(wheels: dict[str, tuple[Path, str]]) -> None:
    wheel, said = wheels["pybind11"]
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name == f"unitvec-1.0-{version}-{version}-{LINUX}.whl"
    assert "unitvec/libunitvec_kernels.so" in names(wheel)
    assert "rocdl:gfx942 " in said


def test_an_import_is_quick_and_loads_nothing(installed: Path, tmp_path: Path) -> None:
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
    done = run(installed, "-u", "-c", code, cwd=tmp_path, environment={"PYTHONPATH": ""}, fails=True)
    took, *lines = done.stdout.splitlines()
    assert float(took) < 10
    assert lines[:4] == [
        "[]",
        "False ['library', 'saxpy', 'scale']",
        "True True saxpy(a: float32, x: float32[n], y: float32[m]) -> None",
        "True False False",
    ]
    missing = "AttributeError: module 'vectorops.kernels' has no attribute 'saxpi'; it has: library, saxpy, scale"
    assert lines[-1].startswith(missing)


def test_a_program_of_cmake(tmp_path: Path) -> None:
    source = copy_of("cmake_cpp", tmp_path)
    build = tmp_path / "build"
    found = run(sys.executable, "-m", "offload.cmake", cwd=tmp_path).stdout.strip()
    run("cmake", "-S", source, "-B", build, f"-DOffload_DIR={found}", f"-DOFFLOAD_PYTHON={sys.executable}",
        f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}", cwd=tmp_path)  # fmt: skip
    assert "rocdl:gfx942 " in run("cmake", "--build", build, cwd=tmp_path).stdout
    assert "Compiling" not in run("cmake", "--build", build, cwd=tmp_path).stdout
    run("ctest", "--output-on-failure", cwd=build)
    (source / "saxpy.mlir").write_text((source / "saxpy.mlir").read_text().replace("mulf", "divf"))
    assert "Compiling kernels of vector_kernels" in run("cmake", "--build", build, cwd=tmp_path).stdout
    run("cmake", "--install", build, cwd=tmp_path)
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
