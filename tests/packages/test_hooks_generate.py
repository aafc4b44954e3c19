"""What is made beside a compiled library: the module that loads it, its stub, its C++ header."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from compiling import ROOT

import offload
from offload.artifact.meta import Argument, KernelSignature, Metadata, Signature
from offload.errors import CompileError, OffloadError
from offload.hooks.generate import Editable, Origin, check_names, module_text, names_in, stub_text
from offload.hooks.header import header_text, namespace_of

ARRAY = Argument("x", "memref", "float32", (None, 4))
HALF = Argument("h", "memref", "bfloat16", (None,))
COUNT = Argument("n", "scalar", "int64")


def function(name: str, *args: Argument, results: tuple[Argument, ...] = ()) -> Signature:
    return Signature(name, f"_mlir_ciface_{name}", args, results)


METADATA = Metadata(
    (
        function("plain"),
        function("sum", ARRAY, COUNT, results=(Argument("", "scalar", "float64"),)),
        function("of_bits", HALF, Argument("stream", "scalar", "bool")),
        function("odd", Argument("class", "scalar", "int8"), Argument("class", "scalar", "uint8")),
        function("makes", COUNT, results=(ARRAY, HALF)),
        function("tiny", Argument("x", "scalar", "float8_e4m3fn")),
        function("wave", Argument("x", "scalar", "complex64")),
        function("not-a-name", COUNT),
        function("class", COUNT),
    )
)


def test_the_stub(tmp_path: Path) -> None:
    text = stub_text(METADATA, "host:x86-64")
    assert text.startswith('"""Kernels, compiled for: host:x86-64."""\n# Made by offload; changes are lost.\n')
    assert text.rstrip().splitlines()[-8:] == [
        "library: Library",
        *(f"{name}: _function_{name}" for name in ("plain", "sum", "of_bits", "odd", "makes", "tiny", "wave")),
    ]
    (tmp_path / "kernels.pyi").write_text(text)
    (tmp_path / "use.py").write_text(
        "import numpy\nimport kernels\nfrom numpy.typing import NDArray\n"
        "x: NDArray[numpy.float32] = numpy.zeros((2, 4), numpy.float32)\n"
        "total: float = kernels.sum(x, 3)\nkernels.plain(stream=kernels.library.stream())\n"
        "made: NDArray[numpy.float32] = kernels.makes(3)[0]\nkernels.sum('text', 3)  # wrong\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line] == ["8"], done.stdout


def test_the_stub_of_functions_with_its_own_words(tmp_path: Path) -> None:
    number, truth = Argument("int", "scalar", "int32"), Argument("numpy", "scalar", "bool")
    words = (
        "numpy",
        "int",
        "bool",
        "Any",
        "overload",
        "Function",
        "Library",
        "ArrayLike",
        "tuple",
        "NDArray",
        "Launch",
    )
    functions = [function(word, number, truth, ARRAY, results=(number, HALF, truth)) for word in words]
    kernels = (KernelSignature("k", "m", (Argument("Launch", "memref", "float32", (None,)),)),)
    metadata = Metadata((*functions, function("made", results=(ARRAY,))), kernels)
    (tmp_path / "kernels.pyi").write_text(stub_text(metadata, "host"))
    (tmp_path / "use.py").write_text(
        "import numpy\nimport kernels\nfrom numpy.typing import NDArray\n"
        "x: NDArray[numpy.float32] = numpy.zeros((2, 4), numpy.float32)\n"
        + "".join(f"a{word}: int = kernels.{word}(int=3, numpy=True, x=x)[0]\n" for word in words)
        + "made: NDArray[numpy.float32] = kernels.made()\nkernels.library.kernels.k[1, 2](Launch=x)\n"
        "kernels.int(int='text', numpy=True, x=x)  # wrong\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py", "kernels.pyi"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wrong = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert wrong == [["use.py", str(len(words) + 7)]], done.stdout


def test_the_module() -> None:
    origin = Origin("f00", "host:x86-64", "ba5e")
    text = module_text(METADATA, "kernels.offload.so", origin, None)
    assert [line.rpartition(" ")[2] for line in text.split("\n")[2:5]] == ["f00", "host:x86-64", "ba5e"]
    module: dict[str, object] = {"__name__": "pkg.kernels", "__file__": "/nowhere/kernels.py"}
    exec(compile(text, "kernels.py", "exec"), module)
    names = ["library", "plain", "sum", "of_bits", "odd", "makes", "tiny", "wave"]
    assert module["__all__"] == names
    editable = module_text(
        METADATA, "kernels.offload.so", origin, Editable("pkg.kernels", Path("/p/pyproject.toml"), ["host"])
    )
    assert names_in(editable) == names
    assert "/p/pyproject.toml" in editable
    assert "/p/pyproject.toml" not in text


def test_a_function_that_another_process_removed() -> None:
    """Where the library that is loaded is a newer one than the module."""
    module = {"__name__": "pkg.kernels", "__file__": "/nowhere/kernels.py", "library": SimpleNamespace(functions={})}
    exec(module_text(METADATA, "kernels.offload.so", Origin(), None), module)
    with pytest.raises(AttributeError, match=r"^pkg\.kernels\.plain is gone: its library was built again; import"):
        module["__getattr__"]("plain")  # type: ignore[operator]


def test_what_comes_in_while_the_library_is_loaded_may_use_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal's handler, or a finalizer: it waited for itself, and later had a library of its own."""
    module: dict[str, Any] = {"__name__": "pkg.kernels", "__file__": "/nowhere/kernels.py"}
    exec(module_text(METADATA, "kernels.offload.so", Origin(), None), module)
    found: list[object] = []

    def load(path: str) -> SimpleNamespace:
        if not found:
            found.append("")
            found.append(module["__getattr__"]("plain"))
        return SimpleNamespace(functions={"plain": object()})

    monkeypatch.setattr(offload, "load", load)
    thread = threading.Thread(target=lambda: found.append(module["__getattr__"]("plain")), daemon=True)
    thread.start()
    thread.join(20)
    assert found == ["", *[module["library"].functions["plain"]] * 2]  # of one library


def test_importing_the_module_loads_no_other(tmp_path: Path) -> None:
    """It takes a third of a millisecond; ``threading``, which a bare Python has not loaded, took ten times as long."""
    (tmp_path / "kernels.py").write_text(module_text(METADATA, "kernels.offload.so", Origin(), None))
    program = "import sys; sys.path.append('.'); old = {*sys.modules}; import kernels; print({*sys.modules} - old)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout == "{'kernels'}\n"


@pytest.mark.parametrize("name", ["library", "__getattr__"])
def test_a_function_with_a_name_of_the_module(name: str) -> None:
    said = f"pkg.kernels: a function cannot be called {name!r}, which the module uses itself; rename it in its source"
    metadata = Metadata((function("plain"), function(name)))
    text = f'// A {name}(of words):\nfunc.func private @{name}s()\n  func.func @"{name}"() {{\n'.encode()
    with pytest.raises(CompileError) as caught:
        check_names("pkg.kernels", metadata, [("a.mlir", b"module {}"), ("b.mlir", text)])
    shown = f'  func.func @"{name}"() {{'
    assert str(caught.value) == f"b.mlir:3:13: error: {said}\n{shown}\n            ^"
    with pytest.raises(CompileError) as caught:
        check_names("pkg.kernels", metadata, [("a.mlir", b"ML\xefR")])  # bytecode
    assert str(caught.value) == said


def test_functions_may_have_names_that_loaders_use(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["globals", "threading", "_lock", "refresh", "load", "sum"]
    metadata = Metadata(tuple(function(name) for name in names))
    check_names("pkg.kernels", metadata, [])
    library = SimpleNamespace(functions={name: f"the function {name}" for name in names})
    monkeypatch.setattr(offload, "load", lambda path: library)
    monkeypatch.setattr("offload.hooks.editable.refresh", lambda *arguments: arguments[-1])
    for editable in (None, Editable("pkg.kernels", Path("/p/pyproject.toml"), None)):
        module = ModuleType("kernels")
        module.__file__ = "/nowhere/kernels.py"
        exec(module_text(metadata, "k.so", Origin(), editable), module.__dict__)
        assert [getattr(module, name) for name in names] == list(library.functions.values())
        assert module.library is library


def test_the_header(tmp_path: Path) -> None:
    text = header_text("my-kernels", "libmy-kernels.so", METADATA)
    (tmp_path / "my-kernels.h").write_text(text)
    (tmp_path / "use.cpp").write_text(
        """#include "my-kernels.h"
#include "my-kernels.h"
double f(float *data, std::uint16_t *bits) {
  my_kernels::plain();
  my_kernels::of_bits({bits, {7}}, true);
  my_kernels::odd(std::int8_t{1}, std::uint8_t{2});
  offload::Memref<float, 2> x(data, {3, 4});
  static_assert(sizeof(x) == 7 * 8, "MLIR's descriptor");
  my_kernels::sum({data, {3, 4}, {1, 3}}, 0);  // a transposed array
  return my_kernels::sum(x, x.strides[0]) + static_cast<double>(my_kernels::runtime().mgpuGetDefaultDevice());
}
"""
    )
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion"]
    flags += ["-Wshadow", "-Wold-style-cast", "-Werror"]
    subprocess.run(["g++", *flags, *includes, "use.cpp"], cwd=tmp_path, check=True)
    left_out = [line for line in text.splitlines() if " is not here: " in line]
    assert left_out == [
        "// makes is not here: it returns something else than one plain number; write results into an argument.",
        "// tiny is not here: x is float8_e4m3fn, for which C++ has no type.",
        "// wave is not here: x is complex64, which C++ does not pass as MLIR takes it.",
        "// not-a-name is not here: its name is none in C++, or taken.",
        "// class is not here: its name is none in C++, or taken.",
    ]


FIXED = """#include "fixed.h"
#include <cstdio>
int called;
const mgpuApi *api(std::uint32_t) __asm__("libfixed_so.offload_api");
const mgpuApi *api(std::uint32_t) {
  static mgpuApi table{};
  table.mgpuGetLastError = [] { return 0; };
  return &table;
}
void f(offload::Memref<float, 2> *, offload::Memref<float, 2> *) __asm__("libfixed_so._mlir_ciface_f");
void f(offload::Memref<float, 2> *, offload::Memref<float, 2> *) { ++called; }
int main() {
  float data[8];
  fixed::f({data, {2, 4}}, {data, {1, 3}});
  try {
    fixed::f({data, {7, 4}}, {data, {2, 3}});
  } catch (const offload::Error &error) {
    std::printf("%d: %s, called %d time", error.code, error.what(), called);
  }
}
"""


def test_sizes_that_functions_have_fixed_are_checked(tmp_path: Path) -> None:
    """As Python's calls do: code for 3 columns reads past the end of what has fewer."""
    square = Argument("y", "memref", "float32", (1, 3))
    text = header_text("fixed", "libfixed.so", Metadata((function("f", ARRAY, square),)))
    (tmp_path / "fixed.h").write_text(text)
    (tmp_path / "use.cpp").write_text(FIXED)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-o", "use"]
    subprocess.run(["g++", *flags, *includes, "use.cpp"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "use"], check=True, capture_output=True, text=True)
    assert done.stdout == "1: f(): y is float32[1, 3]; dimension 0 has to be 1, it is 2, called 1 time"


STRIDED = """#include "laid.h"
#include <cstdio>
const mgpuApi *api(std::uint32_t) __asm__("liblaid_so.offload_api");
const mgpuApi *api(std::uint32_t) {
  static mgpuApi table{};
  table.mgpuGetLastError = [] { return 0; };
  return &table;
}
using Matrix = offload::Memref<float, 2>;
void show(Matrix *x, Matrix *y, offload::Memref<float, 0> *z) __asm__("liblaid_so._mlir_ciface_f");
void show(Matrix *x, Matrix *y, offload::Memref<float, 0> *z) {
  std::printf("%g %g %g\\n", x->aligned[0], y->aligned[y->offset], z->aligned[0]);
}
int main() {
  float data[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Matrix part(data, {2, 2}), columns(data, {2, 2}), row(data, {1, 3}), none(data, {0, 3});
  part.offset = columns.offset = 3;
  columns.strides = {1, 2};
  row.strides[0] = none.strides[0] = 77;  // there is one row, or none: nobody takes a step
  offload::Memref<float, 0> single(data);
  single.offset = 5;
  laid::f(part, columns, single);
  laid::f(row, none, single);
  for (bool second : {false, true})
    try {
      laid::f(second ? part : columns, part, single);
    } catch (const offload::Error &error) {
      std::printf("%s\\n", error.what());
    }
}
"""


def test_layouts_that_functions_take_for_granted(tmp_path: Path) -> None:
    """Code for rows that lie one behind the other reads neither strides nor an offset."""
    columns = Argument("y", "memref", "float32", (None, None), (1, None), None)
    rows = Argument("x", "memref", "float32", (None, None))
    text = header_text(
        "laid", "liblaid.so", Metadata((function("f", rows, columns, Argument("z", "memref", "float32")),))
    )
    (tmp_path / "laid.h").write_text(text)
    (tmp_path / "use.cpp").write_text(STRIDED)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-o", "use"]
    subprocess.run(["g++", *flags, *includes, "use.cpp"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "use"], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "3 3 5",
        "0 0 5",
        "f(): x is float32[?, ?]; the stride of dimension 0 has to be 2, it is 1",
        "f(): y is float32[?, ?]; the stride of dimension 0 has to be 1, it is 2",
    ]


def test_documentation_in_the_header(tmp_path: Path) -> None:
    documented = function("f", ARRAY)._replace(doc="Halves x.\n\nIn place */ \\ \\\\")
    text = header_text("told", "libtold.so", Metadata((documented,)))
    assert "/// Halves x.\n///\n/// In place */\n///\n/// x: float32[" in text
    (tmp_path / "told.h").write_text(text)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    subprocess.run(
        ["g++", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", *includes, "told.h"], cwd=tmp_path, check=True
    )


def test_a_header_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "none.h").write_text(header_text("none", "libnone.so", Metadata()))
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    subprocess.run(["g++", "-fsyntax-only", "-x", "c++", *includes, "none.h"], cwd=tmp_path, check=True)


MACROS = ("EOF", "INFINITY", "NAN", "NULL", "alloca", "assert", "errno", "linux", "offsetof", "stdout", "unix")


def test_names_that_the_header_uses(tmp_path: Path) -> None:
    """Its own variable as an argument; characters that are digits elsewhere; names of other things."""
    results = (Argument("", "scalar", "int64"),)
    names = ("offload_result", "x²", "offload", "std", "check", "int64_t", "odd")
    taken = [function(f"f{i}", Argument(name, "scalar", "int64"), results=results) for i, name in enumerate(names)]
    taken += [function(name, results=results) for name in names]
    text = header_text("odd", "libodd.so", Metadata(tuple(taken)))
    assert [line for line in text.splitlines() if " is not here: " in line] == [
        f"// {name} is not here: its name is none in C++, or taken." for name in names[:2]
    ]
    (tmp_path / "odd.h").write_text(text)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", *includes]
    subprocess.run(["g++", *flags, "odd.h"], cwd=tmp_path, check=True)


def test_words_of_c(tmp_path: Path) -> None:
    """What is a word of C++ alone, or of a later C++, is no name of an argument, a function or a namespace."""
    words = ("requires", "static_assert", "thread_local", "bitand", "char8_t", "co_await", "typeof", *MACROS)
    taken = [function(f"f{number}", Argument(word, "scalar", "int64")) for number, word in enumerate(words)]
    text = header_text("runtime", "libruntime.so", Metadata((*taken, function("concept"), *map(function, MACROS))))
    assert "// concept is not here: its name is none in C++, or taken." in text
    (tmp_path / "words.h").write_text(text)
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    others = [word for header in ("cmath", "cstdio", "cassert") for word in ("-include", header)]
    flags = ["-std=gnu++20", "-fsyntax-only", "-x", "c++", *includes, *others]
    subprocess.run(["g++", *flags, "words.h"], cwd=tmp_path, check=True)
    for name, space in {"class": "class", "linux": "linux", "2d.kernels": "2d_kernels", "std": "std"}.items():
        with pytest.raises(OffloadError, match=f'in a namespace "{space}", which is none in C\\+\\+; give the library'):
            namespace_of(name)


def test_headers_of_libraries_whose_names_are_much_alike(tmp_path: Path) -> None:
    """None keeps another one out, or a header that all of them include."""
    names = ("ops", "OPS", "memref", "MEMREF")
    for name in names:
        metadata = Metadata((function("twice", results=(Argument("", "scalar", "int64"),)),))
        (tmp_path / f"{name}.h").write_text(header_text(name, f"lib{name}.so", metadata))
    calls = " + ".join(f"{name}::twice()" for name in names)
    included = "".join(f'#include "{name}.h"\n' for name in names)
    (tmp_path / "main.cpp").write_text(f"{included}std::int64_t sum() {{ return {calls}; }}\n")
    includes = ["-I", ROOT / "runtime_c", "-I", ROOT / "offload" / "cmake" / "include"]
    subprocess.run(["g++", "-std=c++17", "-fsyntax-only", *includes, "main.cpp"], cwd=tmp_path, check=True)
    with pytest.raises(OffloadError, match=r"its header would be mgpu\.h, which is the runtime's; give the library"):
        namespace_of("mgpu")
