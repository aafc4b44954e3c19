"""Projects of CMake around their kernels: for another machine, in several folders, installed for other projects."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES
from packaging_tools import backend, clean_venv, configure, copy_of, names, run, unpack

import offload.artifact
from offload.artifact.elf import machine_name


def test_the_python_of_the_environment_with_offload(tmp_path: Path) -> None:
    """Nobody activated it, and the project looked for another Python, which has no offload."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\nset(Python_EXECUTABLE /bin/false)\n"
        'find_package(Offload 0.1 REQUIRED)\nmessage(STATUS "with ${OFFLOAD_PYTHON}")\n'
    )
    installed = tmp_path / "venv/lib/python3.9/site-packages/offload"
    installed.mkdir(parents=True)
    (installed / "cmake").symlink_to(Path(offload.__file__).parent / "cmake")
    (tmp_path / "venv/bin").mkdir()
    python = tmp_path / "venv/bin/python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    command = ("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DOffload_DIR={installed / 'cmake'}")
    assert f"-- with {python}\n" in run(*command, cwd=tmp_path).stdout


RANGES = """cmake_minimum_required(VERSION 3.20)
project(ranges LANGUAGES NONE)
foreach(asked 0.0 HERE 99 "HERE;EXACT" 0.0...HERE 0.0...<HERE HERE...<HERE.1 0.0...0.0.0.9)
  find_package(Offload ${asked} QUIET)
  message(STATUS "found: ${Offload_FOUND}")
  set(Offload_DIR "${FOLDER}" CACHE PATH "" FORCE)
endforeach()
"""


def test_versions_and_ranges_of_versions(tmp_path: Path) -> None:
    """The upper end of a range was not looked at."""
    (tmp_path / "CMakeLists.txt").write_text(RANGES.replace("HERE", offload.__version__))
    folder = Path(offload.__file__).parent / "cmake"
    command = ("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DOffload_DIR={folder}", f"-DFOLDER={folder}")
    said = run(*command, cwd=tmp_path).stdout
    found = [line.removeprefix("-- found: ") for line in said.splitlines() if line.startswith("-- found: ")]
    assert found == ["1", "1", "0", "1", "1", "0", "1", "0"]


CROSS = """cmake_minimum_required(VERSION 3.20)
project(cross LANGUAGES NONE)
find_package(Offload 0.1 REQUIRED)
offload_add_library(one SOURCES first.mlir)
offload_add_library(here SOURCES first.mlir ARCH x86_64)
offload_add_modules()
"""


def test_a_project_for_another_machine(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CROSS)
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    table = '[[tool.offload.kernels]]\nmodule = "{}"\nsources = ["first.mlir"]\n'
    named = table.format("b.named") + 'options = { arch = "x86_64" }\n'
    (tmp_path / "pyproject.toml").write_text(table.format("b.kernels") + named)
    (tmp_path / "arm.cmake").write_text("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR arm64)\n")
    configure(tmp_path, f"-DCMAKE_TOOLCHAIN_FILE={tmp_path / 'arm.cmake'}")
    run("cmake", "--build", "build", cwd=tmp_path)
    modules = tmp_path / "build" / "offload-modules" / "b"
    for library, machine in {
        "build/libone.so": "aarch64",
        "build/libhere.so": "x86_64",
        modules / "kernels.offload.so": "aarch64",
        modules / "named.offload.so": "x86_64",
    }.items():
        assert machine_name(offload.artifact.read(tmp_path / library).machine) == machine
    assert (modules / "kernels.pyi").read_text().startswith('"""Kernels, compiled for: host:aarch64."""')


def test_a_folder_beside_the_one_that_looks_for_offload(tmp_path: Path) -> None:
    for folder, text in {
        "": "cmake_minimum_required(VERSION 3.20)\nproject(two LANGUAGES NONE)\nadd_subdirectory(parts)\n"
        "add_subdirectory(kernels)\n",
        "parts": "find_package(Offload 0.1 REQUIRED)\n",
        "kernels": "offload_add_library(one SOURCES first.mlir DESTINATION lib INCLUDE_DESTINATION include)\n",
    }.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "CMakeLists.txt").write_text(text)
    (tmp_path / "kernels/first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    configure(tmp_path, f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'installed'}")
    run("cmake", "--build", "build", "--target", "install", cwd=tmp_path)
    assert (tmp_path / "installed/lib/libone.so").is_file()
    assert (tmp_path / "installed/include/mgpu.h").is_file()


USER = """cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES CXX)
find_package(one REQUIRED)
find_package(one REQUIRED)
add_executable(program main.cpp)
target_compile_features(program PRIVATE cxx_std_17)
target_link_libraries(program PRIVATE one)
"""


@pytest.mark.parametrize("libraries", ["lib", "absolute"])
def test_an_installed_library_in_another_project(libraries: str, tmp_path: Path) -> None:
    """The installation is moved, where its folders are relative to each other."""
    maker, user, prefix = (tmp_path / name for name in ("maker", "user", "installed"))
    for folder in (maker, user):
        folder.mkdir()
    (maker / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    where = prefix if libraries == "absolute" else Path()
    (maker / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(maker LANGUAGES NONE)\nfind_package(Offload 0.1 REQUIRED)\n"
        f"offload_add_library(one SOURCES first.mlir DESTINATION {where / 'lib'} INCLUDE_DESTINATION include/x\n"
        "  CONFIG_DESTINATION lib/cmake/one)\n"
    )
    configure(maker, f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--build", "build", "--target", "install", cwd=maker)
    if libraries != "absolute":
        prefix = prefix.rename(tmp_path / "elsewhere")
    (user / "CMakeLists.txt").write_text(USER)
    (user / "main.cpp").write_text(
        '#include <cstdio>\n#include "one.h"\nint main() {\n  float x[] = {1, 2}, y[] = {3, 4};\n'
        '  one::saxpy(2, {x, {2}}, {y, {2}});\n  std::printf("%g %g\\n", y[0], y[1]);\n}\n'
    )
    run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=user)
    run("cmake", "--build", "build", cwd=user)
    assert run(user / "build" / "program", cwd=user, environment={"OFFLOAD_BACKEND": "host"}).stdout == "5 8\n"


def test_modules_of_any_name(tmp_path: Path) -> None:
    """Targets of CMake have other names than modules of Python."""
    (tmp_path / "CMakeLists.txt").write_text(CROSS.replace("offload_add_library", "# "))
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    modules = ["größe.kernels", "a_b.c", "a.b_c"]
    table = '[[tool.offload.kernels]]\nmodule = "{}"\nsources = ["first.mlir"]\n'
    (tmp_path / "pyproject.toml").write_text("".join(map(table.format, modules)))
    configure(tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    for name in modules:
        assert (tmp_path / "build/offload-modules" / name.replace(".", "/")).with_suffix(".offload.so").is_file()


def test_an_editable_package_of_scikit_build_core_in_place(tmp_path: Path) -> None:
    """Nothing is installed then: what is imported are the sources."""
    package = copy_of("scikit_build_core", tmp_path)
    settings = "{'editable.mode': 'inplace', 'cmake.define.OFFLOAD_TARGETS': 'host'}"
    backend(package, "build_editable", tmp_path / "out", "scikit_build_core.build", settings)
    python = clean_venv(tmp_path / "venv")
    unpack(next((tmp_path / "out").glob("*.whl")), python)
    said = run(python, "-c", "import heat.kernels as k; print(k.step, k.__file__)", cwd=tmp_path).stdout
    assert f" {package / 'src' / 'heat' / 'kernels.py'}" in said
    (package / "src").rename(package / "lib")
    (package / "pyproject.toml").write_text((package / "pyproject.toml").read_text().replace("src/", "lib/"))
    said = backend(package, "build_editable", tmp_path / "out", "scikit_build_core.build", settings, fails=True)
    assert "takes heat.kernels from its package's folder among the sources, and there is none" in " ".join(said.split())


def test_a_wheel_in_which_cmake_installs_into_a_folder(tmp_path: Path) -> None:
    """A module's name counts from the wheel's root, wherever the project's own files are to go."""
    package = copy_of("scikit_build_core", tmp_path)
    path = package / "pyproject.toml"
    there = '[tool.scikit-build]\nwheel.install-dir = "native/code"\n'
    path.write_text(path.read_text().replace("[tool.scikit-build]\n", there))
    lists = package / "CMakeLists.txt"
    lists.write_text(lists.read_text() + 'install(FILES CMakeLists.txt DESTINATION "own")\n')
    made = {"heat/kernels.py", "heat/kernels.pyi", "heat/kernels.offload.so"}
    chosen = "'cmake.define.OFFLOAD_TARGETS': 'host'"
    backend(package, "build_wheel", tmp_path / "out", "scikit_build_core.build", f"{{{chosen}}}")
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert names(wheel) == {"heat/__init__.py", "heat/step.mlir", "native/code/own/CMakeLists.txt", *made}

    settings = f"{{'editable.rebuild': 'true', 'build-dir': 'build', {chosen}}}"
    backend(package, "build_editable", tmp_path / "editable", "scikit_build_core.build", settings)
    python = clean_venv(tmp_path / "venv")
    unpack(next((tmp_path / "editable").glob("*.whl")), python)
    source = package / "src" / "heat" / "step.mlir"
    source.write_text(
        source.read_text().replace("%now:", "%before:").replace("%now,", "%before,").replace("%now[", "%before[")
    )
    said = run(python, "-c", "import heat.kernels; print(heat.kernels.step)", cwd=tmp_path).stdout
    assert "<offload function step(r: float32, before: float32[n]" in said


@pytest.mark.parametrize("folder", ["a;b", "c[d"])
def test_a_package_in_a_folder_that_is_no_item_of_a_list(folder: str, tmp_path: Path) -> None:
    """Files of a build tool's lists were taken for one, or one of them for several: none was there."""
    (tmp_path / folder).mkdir()
    package = copy_of("scikit_build_core", tmp_path / folder)
    source = (package / "src" / "heat" / "step.mlir").read_text()
    (package / "src" / "heat" / "again.mlir").write_text(source.replace("@step", "@again"))
    backend(
        package, "build_wheel", tmp_path / "out", "scikit_build_core.build", "{'cmake.define.OFFLOAD_TARGETS': 'host'}"
    )
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert {"heat/kernels.py", "heat/kernels.offload.so", "heat/again.mlir"} <= names(wheel)


def test_a_wheel_for_any_machine(tmp_path: Path) -> None:
    package = copy_of("scikit_build_core", tmp_path)
    path = package / "pyproject.toml"
    table = "[tool.scikit-build]\n"
    path.write_text(path.read_text().replace(table, f"{table}wheel.platlib = false\n"))
    settings = "{'build-dir': 'build', 'cmake.define.OFFLOAD_TARGETS': 'host'}"
    backend_of = (package, "build_wheel", tmp_path / "out", "scikit_build_core.build", settings)
    said = " ".join(backend(*backend_of, fails=True).split())
    assert "the wheel would be named for any machine (py3-none-any), and what is compiled is for one: leave" in said
    # The folder is configured again.
    path.write_text(path.read_text().replace("wheel.platlib = false\n", ""))
    backend(*backend_of)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert "-py3-none-linux_" in wheel.name


def test_a_wheel_for_another_processor(tmp_path: Path) -> None:
    """Under the name of one for this machine it would be installed here, and fail when it is used."""
    other = "x86_64" if platform.machine() == "aarch64" else "aarch64"
    package = copy_of("scikit_build_core", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text() + f'options = {{ arch = "{other}" }}\n')
    settings = "{'build-dir': 'build', 'cmake.define.OFFLOAD_TARGETS': 'host'}"
    backend_of = (package, "build_wheel", tmp_path / "out", "scikit_build_core.build", settings)
    for _ in range(2):  # what the first one compiled does not count as built
        said = " ".join(backend(*backend_of, fails=True).split())
        assert f'1 ("heat.kernels"): the library is for {other}, and the wheel\'s tag would be linux_' in said
    named = {"_PYTHON_HOST_PLATFORM": f"linux-{other}"}
    backend(*backend_of, environment=named)
    assert [wheel.name for wheel in (tmp_path / "out").glob("*.whl")] == [f"heat-1.0-py3-none-linux_{other}.whl"]


def test_an_editable_installation_by_a_scikit_build_core_that_imports_libraries(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CROSS.replace("offload_add_library", "# "))
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.offload.kernels]]\nmodule = "b.kernels"\nsources = ["first.mlir"]\n'
    )
    editable = ("-DSKBUILD=2", "-DSKBUILD_STATE=editable")
    said = configure(tmp_path, *editable, "-DSKBUILD_CORE_VERSION=0.12.2", fails=True)
    assert "scikit-build-core 0.12.2 may import the library of a module in place of the" in " ".join(said.split())
    configure(tmp_path, *editable, "-DSKBUILD_CORE_VERSION=1.0.0")
    configure(tmp_path, "-DSKBUILD=2", "-DSKBUILD_STATE=wheel", "-DSKBUILD_CORE_VERSION=0.12.2")
