"""``find_package(Offload)``: what offload_add_library and offload_add_modules take, and what they refuse."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES
from packaging_tools import backend, clean_venv, configure, copy_of, images, run, unpack

import offload.artifact
from offload.artifact.elf import machine_name

PROGRAM = "// {0} doubles, and asks C what to add.\n" + (
    "func.func private @more() -> f32 attributes {{llvm.emit_c_interface}}\n"
    "func.func @{0}(%x: memref<?xf32>) {{\n"
    "  %c0 = arith.constant 0 : index\n"
    "  %c1 = arith.constant 1 : index\n"
    "  %n = memref.dim %x, %c0 : memref<?xf32>\n"
    "  %more = func.call @more() : () -> f32\n"
    "  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{\n"
    "    %v = memref.load %x[%i] : memref<?xf32>\n"
    "    %two = arith.addf %v, %v : f32\n"
    "    %sum = arith.addf %two, %more : f32\n"
    "    memref.store %sum, %x[%i] : memref<?xf32>\n"
    "  }}\n"
    "  return\n"
    "}}\n"
)
MORE = "float _mlir_ciface_more(void);\nfloat _mlir_ciface_more(void) { return 0.5f; }\n"
MAIN = r"""
#include <cstdio>
#include "one.h"
#include "two.h"
int main() {
  one::runtime().mgpuBackendUse("host");
  two::runtime().mgpuBackendUse("no such backend");
  float values[] = {1, 2, 3};
  one::first({values, {3}});
  std::printf("%g %g %g %d\n", values[0], values[1], values[2], &one::runtime() != &two::runtime());
  try {
    two::second({values, {3}});
  } catch (const offload::Error &error) {
    std::printf("%d %s\n", error.code != 0, error.what());
  }
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(two_libraries LANGUAGES C CXX)
find_package(Offload 0.1 REQUIRED)
add_library(more OBJECT more.c)
set_target_properties(more PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_custom_command(OUTPUT second.mlir COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/second.in second.mlir
                   DEPENDS second.in)
offload_add_library(one SOURCES $<1:first.mlir> OPT 1 DEBUG TARGETS nvvm:sm_90 OBJECTS $<TARGET_OBJECTS:more>)
offload_add_library(two SOURCES ${CMAKE_CURRENT_BINARY_DIR}/second.mlir TARGETS nvvm:sm_90
                    OBJECTS $<TARGET_OBJECTS:more>)
add_executable(program main.cpp)
target_compile_features(program PRIVATE cxx_std_17)
target_link_libraries(program PRIVATE one two)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program with two libraries: an object of C in both, one source that is generated."""
    for name, text in {
        "first.mlir": PROGRAM.format("first"),
        "second.in": PROGRAM.format("second"),
        "more.c": MORE,
        "main.cpp": MAIN,
        "CMakeLists.txt": PROJECT,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_two_libraries_in_one_program(project: Path) -> None:
    configure(project, "-DOFFLOAD_TARGETS=host;nvvm:sm_80")
    run("cmake", "--build", "build", cwd=project)
    for name in ("one", "two"):
        library = offload.artifact.read(project / "build" / f"lib{name}.so")
        assert [image.target for image in library.images] == ["host", "nvvm"]
    printed = run(project / "build" / "program", cwd=project).stdout.splitlines()
    assert printed[0] == "2.5 4.5 6.5 1"
    assert printed[1].startswith("1 ")
    assert "no such backend" in printed[1]
    # The generated source is followed, too.
    (project / "second.in").write_text(PROGRAM.format("second").replace("%v, %v", "%v, %more"))
    assert "Compiling kernels of two" in run("cmake", "--build", "build", cwd=project).stdout
    assert "Compiling" not in run("cmake", "--build", "build", cwd=project).stdout


def test_what_cmake_refuses(project: Path) -> None:
    for call, message in {
        "offload_add_library(one TARGETS host)": "offload_add_library(one): SOURCES is missing: MLIR files",
        "offload_add_library(one stray SOURCES a)": "offload_add_library(one): unknown arguments: stray",
        "offload_add_library(one SOURCES a TARGET host)": (
            "offload_add_library(one): SOURCES: TARGET is no file, and no keyword; there are SOURCES, TARGETS, OPT"
        ),
        "offload_add_library(one SOURCES a TARGETS host LINKS a.bc)": "(one): TARGETS: LINKS is no",
        "offload_add_library(one SOURCES a CONFIG_DESTINATION lib/cmake/one)": (
            "(one): CONFIG_DESTINATION is for a library that DESTINATION and INCLUDE_DESTINATION install"
        ),
        "offload_add_modules(stray)": "offload_add_modules: unknown arguments: stray",
        "offload_embed(one two)": "offload_embed(one two DESTINATION <the folder where one is installed>)",
        "find_package(Offload 99 REQUIRED)": 'compatible with requested version "99"',
        "offload_add_modules()": "pyproject.toml; where it is elsewhere, name it: offload_add_modules(PYPROJECT",
    }.items():
        text = f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\nfind_package(Offload)\n{call}\n"
        (project / "CMakeLists.txt").write_text(text)
        shutil.rmtree(project / "build", ignore_errors=True)
        assert message in " ".join(configure(project, fails=True).split())


def test_errors_of_the_compiler_are_those_of_the_build(project: Path) -> None:
    (project / "first.mlir").write_text("func.func @first( {}\n")
    configure(project)
    said = run("cmake", "--build", "build", "--target", "one_kernels", cwd=project, fails=True).stdout
    assert "\nfirst.mlir:1:" in said  # where editors look for it
    assert "Traceback" not in said


def test_functions_without_a_signature_are_named_in_the_header(tmp_path: Path) -> None:
    (tmp_path / "c.mlir").write_text(
        "func.func @lanes(%v: vector<4xf32>) -> vector<4xf32> { return %v : vector<4xf32> }\n"
        "func.func @plain(%v: f32) -> f32 { return %v : f32 }\n"
    )
    words = ("library", "libc.so", "c.mlir", "--root", ".", "--header", "c.h")
    run(sys.executable, "-m", "offload.hooks", *words, cwd=tmp_path)
    left_out = [line for line in (tmp_path / "c.h").read_text().splitlines() if " is not here: " in line]
    assert left_out == ["// lanes is not here: it has a type that is not described; C calls _mlir_ciface_lanes."]


@pytest.mark.parametrize("words", [["build"], ["module", "pkg.k", "--pyproject"]])
def test_a_module_of_the_authors_where_scikit_build_core_finds_it(words: list[str], tmp_path: Path) -> None:
    """CMake does not tell where the package's sources are: the wheel had the compiled module in place of it."""
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["k.mlir"]\n')
    (tmp_path / "k.mlir").write_text("func.func @f() { return }\n")
    (tmp_path / "python" / "pkg").mkdir(parents=True)
    (tmp_path / "python" / "pkg" / "k.py").write_text("mine = 1\n")
    command = [sys.executable, "-m", "offload.hooks", *words, "pyproject.toml", "--output", "out"]
    assert "python/pkg/k.py is there, and offload did not make it" in run(*command, cwd=tmp_path, fails=True).stdout


@pytest.mark.parametrize(
    "words",
    [["build", "pyproject.toml", "--output", "out"], ["library", "k.so", "k.mlir", "--root", ".", "--header", "k.h"]],
)
def test_wrong_settings(words: list[str], tmp_path: Path) -> None:
    """They were errors of the table's targets, and of a call's ARCH."""
    (tmp_path / "pyproject.toml").write_text('[[tool.offload.kernels]]\nmodule = "pkg.k"\nsources = ["k.mlir"]\n')
    (tmp_path / "k.mlir").write_text("func.func @f() { return }\n")
    wrong = {"OFFLOAD_CACHE_SIZE": "much"}
    done = run(sys.executable, "-m", "offload.hooks", *words, cwd=tmp_path, environment=wrong, fails=True)
    assert done.returncode == 2
    assert done.stdout.startswith("offload: error: OFFLOAD_CACHE_SIZE is ")


def test_arguments_that_no_build_takes(project: Path) -> None:
    """Which call has it, and which of its arguments."""
    for arguments, message in {
        "OPT 9": "offload_add_library(one): OPT is 0 to 3, not '9'",
        "OPT fast": "offload_add_library(one): OPT is 0 to 3, not 'fast'",
        "ARCH vax": "offload_add_library(one): ARCH: unknown architecture 'vax'; there are: x86_64, aarch64",
        "TARGETS nvm": ("offload_add_library(one): TARGETS, or OFFLOAD_TARGETS in their place: unknown target 'nvm'"),
    }.items():
        call = f"offload_add_library(one SOURCES first.mlir {arguments})"
        text = f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\nfind_package(Offload)\n{call}\n"
        (project / "CMakeLists.txt").write_text(text)
        configure(project)
        said = run("cmake", "--build", "build", cwd=project, fails=True).stdout
        assert f"offload: error: {message}" in said


def test_a_name_that_is_no_namespace(project: Path) -> None:
    call = "offload_add_library(2d SOURCES nothing.mlir)"
    text = f"cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\nfind_package(Offload)\n{call}\n"
    (project / "CMakeLists.txt").write_text(text)
    (project / "nothing.mlir").touch()
    configure(project)
    said = run("cmake", "--build", "build", cwd=project, fails=True).stdout
    assert "offload: error: offload_add_library(2d): the header's functions would be in a namespace" in said


def test_targets_of_a_scikit_build_core_package(tmp_path: Path) -> None:
    package = copy_of("scikit_build_core", tmp_path)
    settings = "{'cmake.define.OFFLOAD_TARGETS': 'nvvm:sm_80;host'}"
    backend(package, "build_wheel", tmp_path / "out", "scikit_build_core.build", settings)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert [image.split(":")[0] for image in images(wheel, tmp_path)] == ["nvvm", "host"]
    backend(
        package, "build_wheel", tmp_path / "out", "scikit_build_core.build", environment={"OFFLOAD_TARGETS": "host"}
    )
    assert [image.split(":")[0] for image in images(wheel, tmp_path)] == ["host"]
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace("sources = ", "source = "))
    said = backend(package, "build_wheel", tmp_path / "out", "scikit_build_core.build", fails=True)
    assert 'pyproject.toml: [[tool.offload.kernels]] 1: unknown key "source"; did you mean "sources"?' in " ".join(
        said.split()
    )


def test_an_editable_scikit_build_core_package_is_built_again(tmp_path: Path) -> None:
    package = copy_of("scikit_build_core", tmp_path)
    settings = "{'editable.rebuild': 'true', 'build-dir': 'build', 'cmake.define.OFFLOAD_TARGETS': 'host'}"
    backend(package, "build_editable", tmp_path / "out", "scikit_build_core.build", settings)
    python = clean_venv(tmp_path / "venv")
    unpack(next((tmp_path / "out").glob("*.whl")), python)
    code = (
        "import numpy as np, heat.kernels as k; x = np.array([1, 3, 1], np.float32); y = x.copy(); "
        "k.step(0.25, x, y); print(y[1])"
    )

    def step() -> str:
        return run(python, "-c", code, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout.splitlines()[-1]

    assert step() == "2.0"
    source = package / "src" / "heat" / "step.mlir"
    source.write_text(source.read_text().replace("constant 2.0", "constant 4.0"))
    # Built within the second of what is installed, as on a quick machine: CMake takes both for one.
    run("cmake", "--build", "build", cwd=package)
    for built in (package / "build" / "offload-modules").rglob("kernels.*"):
        if built.suffix == ".sources":
            continue
        (installed,) = (package / "build" / "install").rglob(built.name)
        os.utime(installed, ns=(built.stat().st_atime_ns, built.stat().st_mtime_ns))
    assert step() == "0.5"


def test_folders_to_install_to_are_spelt_freely(tmp_path: Path) -> None:
    """CMake 4 warns of paths that it would write in another way, which a project cannot help."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(spelt LANGUAGES C)\nfind_package(Offload 0.1 REQUIRED)\n"
        "offload_add_library(one SOURCES first.mlir TARGETS host DESTINATION ./lib/ INCLUDE_DESTINATION include/.)\n"
    )
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    assert "Warning" not in configure(tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    run("cmake", "--install", "build", "--prefix", "out", cwd=tmp_path)
    assert {path.name for path in (tmp_path / "out").rglob("*.*")} >= {"libone.so", "one.h", "mgpu.h"}


SAME_NAME = r"""
#include <cstdio>
#include "one.h"
#include "two.h"
int main() {
  float values[] = {1, 2, 3};
  one::first({values, {3}});
  std::printf("%g\n", values[0]);
  two::first({values, {3}}, 4);
  std::printf("%g\n%d\n", values[0], two::größe());
  std::printf("%d\n", &one::runtime() != &two::runtime());
}
"""


@pytest.mark.parametrize("flags", ["", "-fno-pie -no-pie"])
def test_two_libraries_with_a_function_of_one_name(flags: str, project: Path) -> None:
    """The linker would take the first's for both; their arguments are others."""
    other = PROGRAM.format("first").replace("<?xf32>) {", "<?xf32>, %by: f32) {").replace("%v, %v", "%v, %by")
    other += 'func.func @"größe"() -> i32 {\n  %c3 = arith.constant 3 : i32\n  return %c3 : i32\n}\n'
    (project / "second.in").write_text(other)
    (project / "main.cpp").write_text(SAME_NAME)
    configure(project, "-DOFFLOAD_TARGETS=host", f"-DCMAKE_CXX_FLAGS={flags}")
    run("cmake", "--build", "build", cwd=project)
    given = {"OFFLOAD_BACKEND": "host"}
    assert run(project / "build" / "program", cwd=project, environment=given).stdout.split() == ["2.5", "7", "3", "1"]


def test_other_targets_for_a_library_without_kernels(project: Path) -> None:
    (project / "plain.mlir").write_text("func.func @same(%a: f32) -> f32 {\n  return %a : f32\n}\n")
    plain = "\noffload_add_library(plain SOURCES plain.mlir{})\n"
    (project / "CMakeLists.txt").write_text(PROJECT + plain.format(""))
    configure(project, "-DOFFLOAD_TARGETS=nvvm:sm_80;host")
    run("cmake", "--build", "build", cwd=project)
    assert [image.target for image in offload.artifact.read(project / "build" / "libone.so").images] == ["nvvm", "host"]
    (project / "CMakeLists.txt").write_text(PROJECT + plain.format(" TARGETS nvvm:sm_90"))
    configure(project, "-DOFFLOAD_TARGETS=")
    said = run("cmake", "--build", "build", cwd=project, fails=True).stdout
    assert (
        "offload_add_library(plain): the sources have no kernel, and these targets were asked for: nvvm:sm_90" in said
    )


def test_targets_that_may_be_left_out(project: Path) -> None:
    text = PROJECT.replace("TARGETS nvvm:sm_90", "TARGETS host OPTIONAL_TARGETS nvvm:sm_90")
    (project / "CMakeLists.txt").write_text(text)
    configure(project)
    nowhere = {"CUDA_HOME": str(project / "nowhere")}
    said = run("cmake", "--build", "build", cwd=project, environment=nowhere).stdout
    assert "one: left out nvvm:sm_90, which is optional; not found: ptxas" in said
    library = offload.artifact.read(project / "build" / "libone.so")
    assert [image.target for image in library.images] == ["host"]
    (project / "CMakeLists.txt").write_text(PROJECT)
    said = run("cmake", "--build", "build", cwd=project, environment=nowhere, fails=True).stdout
    assert "or leave the target out, or name it in OPTIONAL_TARGETS" in said
    assert "pyproject" not in said


def test_a_library_for_another_architecture(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(cross LANGUAGES NONE)\nfind_package(Offload 0.1 REQUIRED)\n"
        "offload_add_library(one SOURCES first.mlir ARCH aarch64)\n"
    )
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    configure(tmp_path)
    # The time to name other targets is over.
    run("cmake", "--build", "build", cwd=tmp_path, environment={"OFFLOAD_TARGETS": "nvvm:sm_90"})
    library = offload.artifact.read(tmp_path / "build" / "libone.so")
    assert machine_name(library.machine) == "aarch64"
    assert [image.chip for image in library.images] == ["aarch64"]


def test_what_targets_are_linked_with(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(linked LANGUAGES C)\nfind_package(Offload 0.1 REQUIRED)\n"
        "offload_add_library(one SOURCES k.mlir TARGETS host,link=twice.ll)\n"
    )
    (tmp_path / "k.mlir").write_text(
        "gpu.module @m {\n  func.func private @twice(f32) -> f32\n  gpu.func @k(%x: f32, %y: memref<1xf32>) kernel {\n"
        "    %c0 = arith.constant 0 : index\n    %v = func.call @twice(%x) : (f32) -> f32\n"
        "    memref.store %v, %y[%c0] : memref<1xf32>\n    gpu.return\n  }\n}\n"
    )
    twice = tmp_path / "twice.ll"
    twice.write_text("define float @twice(float %x) {\n  %r = fmul float %x, 2.0\n  ret float %r\n}\n")
    configure(tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    assert "Compiling" not in run("cmake", "--build", "build", cwd=tmp_path).stdout
    twice.write_text(twice.read_text().replace("2.0", "3.0"))
    assert "Compiling kernels of one" in run("cmake", "--build", "build", cwd=tmp_path).stdout
    # And what those are that stand in place of the call's.
    text = (tmp_path / "CMakeLists.txt").read_text().replace("host,link=twice.ll", "nvvm")
    (tmp_path / "CMakeLists.txt").write_text(text)
    configure(tmp_path, "-DOFFLOAD_TARGETS=host,link=twice.ll")
    run("cmake", "--build", "build", cwd=tmp_path)
    assert "Compiling" not in run("cmake", "--build", "build", cwd=tmp_path).stdout
    twice.write_text(twice.read_text().replace("3.0", "4.0"))
    assert "Compiling kernels of one" in run("cmake", "--build", "build", cwd=tmp_path).stdout


def test_components_of_an_installation(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(parts LANGUAGES C)\nset(OFFLOAD_TARGETS host)\n"
        "find_package(Offload 0.1 REQUIRED)\n"
        "offload_add_library(one SOURCES first.mlir TARGETS nvvm:sm_90 DESTINATION lib INCLUDE_DESTINATION include "
        "COMPONENT kernels)\n"
    )
    (tmp_path / "first.mlir").write_text((EXAMPLES / "saxpy.mlir").read_text())
    configure(tmp_path)  # the project's OFFLOAD_TARGETS hold from the first time on
    run("cmake", "--build", "build", cwd=tmp_path)
    assert [image.target for image in offload.artifact.read(tmp_path / "build" / "libone.so").images] == ["host"]
    for component, found in (("others", False), ("kernels", True)):
        run("cmake", "--install", "build", "--prefix", component, "--component", component, cwd=tmp_path)
        assert {path.name for path in (tmp_path / component).rglob("*.*")} >= {"libone.so", "one.h", "mgpu.h"} or (
            not found
        )
        assert (tmp_path / component / "lib").exists() == found


def test_a_new_file_that_a_pattern_names(tmp_path: Path) -> None:
    """One that comes, changes and goes."""
    (tmp_path / "[a]").mkdir()  # which CMake, too, takes for a pattern
    package = copy_of("scikit_build_core", tmp_path / "[a]")
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace('"src/heat/step.mlir"', '"src/**/heat/*.mlir"'))
    step = package / "src" / "heat" / "step.mlir"
    configure(package, "-DOFFLOAD_TARGETS=host", "-DSKBUILD_PROJECT_NAME=heat")
    library = package / "build" / "offload-modules" / "heat" / "kernels.offload.so"

    def functions() -> set[str]:
        run("cmake", "--build", "build", cwd=package)
        return {function.name for function in offload.artifact.read(library).metadata.functions}

    before = functions()
    new = step.with_name("new.mlir")
    new.write_text(step.read_text().replace("@step", "@new"))
    assert functions() == before | {"new"}
    new.write_text(step.read_text().replace("@step", "@newer"))
    assert functions() == before | {"newer"}
    new.unlink()
    assert functions() == before
