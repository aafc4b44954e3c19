"""Names of libraries whose C++ header would take the place of the C library's, or contradict it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from compiling import ROOT
from packaging_tools import configure, run

from offload.artifact.meta import Metadata, Signature
from offload.errors import OffloadError
from offload.hooks.c_names import FUNCTIONS, HEADERS
from offload.hooks.header import header_text, namespace_of

INCLUDES = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]


def test_a_library_is_not_called_like_a_header_of_c(tmp_path: Path) -> None:
    """The folder of its header comes before those of the system: <cstring> would find it in place of string.h."""
    for name in ("string", "stdint", "time", "features"):
        assert name in HEADERS
        (tmp_path / f"{name}.h").write_text(
            header_text("kernels", "libkernels.so", Metadata((Signature("f", "_mlir_ciface_f", (), ()),)))
        )
        (tmp_path / "main.cpp").write_text("#include <cstring>\n#include <cstdint>\n#include <ctime>\n")
        broken = subprocess.run(["g++", "-fsyntax-only", "-isystem", ".", *INCLUDES, "main.cpp"], cwd=tmp_path)
        assert broken.returncode != 0
        (tmp_path / f"{name}.h").unlink()
        with pytest.raises(OffloadError, match=rf"its header would be {name}\.h, which others would include in place"):
            namespace_of(name)
    assert namespace_of("vector") == "vector"
    assert namespace_of("strings2") == "strings2"


def test_headers_that_those_of_cpp_include(tmp_path: Path) -> None:
    folders = subprocess.run(
        ["g++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True, check=True,
        env=os.environ | {"LC_ALL": "C"},
    ).stderr  # fmt: skip
    searched = [Path(line.strip()).resolve() for line in re.findall(r"^ (/\S+)$", folders, re.MULTILINE)]
    names = [path.name for path in searched[0].iterdir() if path.is_file() and "." not in path.name]
    (tmp_path / "main.cpp").write_text("".join(f"#include <{name}>\n" for name in sorted(names)))
    made = subprocess.run(
        ["g++", "-std=c++20", "-M", "main.cpp"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    included = [Path(word).resolve() for word in made.split() if word.endswith(".h")]
    of_c = [folder for folder in searched if "c++" not in folder.parts]
    assert {path.stem for path in included if path.parent in of_c} <= HEADERS


def test_the_namespace_of_a_library_that_is_called_like_a_function_of_c(tmp_path: Path) -> None:
    """C++ takes none of these for a namespace; with an underscore behind, it takes each."""
    spaces = "".join(f"namespace {name} {{}}\n" for name in sorted(FUNCTIONS))
    (tmp_path / "main.cpp").write_text(f"#include <offload/memref.h>\n{spaces}")
    command = ["g++", "-std=gnu++17", "-fmax-errors=0", "-fsyntax-only", *INCLUDES, "main.cpp"]
    said = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    ).stderr
    assert set(re.findall(r"'namespace (\w+) \{ \}' redeclared", said)) == FUNCTIONS
    spaces = "".join(f"namespace {namespace_of(name)} {{}}\n" for name in sorted(FUNCTIONS))
    (tmp_path / "main.cpp").write_text(f"#include <offload/memref.h>\n{spaces}")
    subprocess.run(command, cwd=tmp_path, check=True)
    assert [namespace_of(name) for name in ("random", "expf", "fadd")] == ["random_", "expf_", "fadd_"]


def test_libraries_whose_names_are_one_namespace(tmp_path: Path) -> None:
    """The header of the second was left out as that of the first; in files of their own, both called the first."""
    added = {"random": 1, "random_": 2, "a-b": 3, "a_b": 4, "a.b": 5}
    project = ["cmake_minimum_required(VERSION 3.20)", "project(alike LANGUAGES CXX)", "find_package(Offload REQUIRED)"]
    for number, (name, each) in enumerate(added.items()):
        (tmp_path / f"{number}.mlir").write_text(
            f"func.func @f(%x: i32) -> i32 {{\n  %c = arith.constant {each} : i32\n  %y = arith.addi %x, %c : i32\n"
            f"  return %y : i32\n}}\nfunc.func @only{number}() {{ return }}\n"
        )
        (tmp_path / f"{number}.cpp").write_text(
            f"#include <{name}.h>\nint of_{number}() {{\n  {namespace_of(name)}::only{number}();\n"
            f"  return {namespace_of(name)}::f({namespace_of(name)}::runtime().mgpuGetLastError ? 100 : 0);\n}}\n"
        )
        project += [f"offload_add_library({name} SOURCES {number}.mlir)"]
    sources = " ".join(f"{number}.cpp" for number in range(len(added)))
    project += [f"add_executable(alike main.cpp {sources})", f"target_link_libraries(alike {' '.join(added)})"]
    calls = ", ".join(f"of_{number}()" for number in range(len(added)))
    (tmp_path / "main.cpp").write_text(
        "".join(f"#include <{name}.h>\nint of_{number}();\n" for number, name in enumerate(added))
        + "#include <cstdio>\nint main() {\n  random_::only0(), random_::only1(), a_b::only2(), a_b::only3();\n"
        + f'  std::printf("%d %d %d %d %d", {calls});\n}}\n'
    )
    (tmp_path / "CMakeLists.txt").write_text("\n".join(project))
    configure(tmp_path)
    run("cmake", "--build", "build", cwd=tmp_path)
    done = subprocess.run([tmp_path / "build" / "alike"], capture_output=True, text=True, check=True)
    assert done.stdout == "101 102 103 104 105"
