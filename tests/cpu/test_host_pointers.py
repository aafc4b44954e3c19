"""Host functions that C calls with plain pointers (``--bare-pointers-for-host``), and C functions called so."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, command, emit

import offload
from offload import CompileError

PROGRAM = """
func.func private @shift(%x: memref<4xf32>, %by: i32) -> memref<4xf32>
func.func private @sum(%x: memref<2xi64>) -> (memref<2xi64>, i64)
func.func private @same(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}
func.func @scale(%x: memref<4xf32>, %f: f32) -> memref<4xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%tx] : memref<4xf32>
    %r = arith.mulf %v, %f : f32
    memref.store %r, %x[%tx] : memref<4xf32>
    gpu.terminator
  }
  %r = call @same(%x) : (memref<4xf32>) -> memref<4xf32>
  return %r : memref<4xf32>
}
func.func @both(%x: memref<4xf32>, %y: memref<2xi64>) -> (memref<4xf32>, i64) {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3 : i32
  %a = call @scale(%x, %two) : (memref<4xf32>, f32) -> memref<4xf32>
  %b = call @shift(%a, %three) : (memref<4xf32>, i32) -> memref<4xf32>
  %c, %d = call @sum(%y) : (memref<2xi64>) -> (memref<2xi64>, i64)
  memref.store %d, %c[%c0] : memref<2xi64>
  return %b, %d : memref<4xf32>, i64
}
"""
IN_C = """
#include <stdint.h>
struct sum { int64_t *x; int64_t sum; };
float *shift(float *x, int by) { x[3] += by; return x; }
struct sum sum(int64_t *x) { return (struct sum){x, x[0] + x[1]}; }
"""


class Both(ctypes.Structure):
    _fields_ = (("x", ctypes.c_void_p), ("sum", ctypes.c_int64))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pointers")
    (folder / "program.mlir").write_text(PROGRAM)
    (folder / "c.c").write_text(IN_C)
    subprocess.run(["cc", "-c", "-fPIC", "-o", folder / "c.o", folder / "c.c"], check=True)
    return offload.build(
        folder / "program.mlir",
        folder / "program.so",
        targets=ALL_TARGETS,
        objects=[folder / "c.o"],
        bare_pointers_for_host=True,
    )


def test_from_c(library: Path) -> None:
    offload.load(library).use("host")
    c = ctypes.CDLL(str(library))
    c.scale.restype, c.scale.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_float)
    c.both.restype, c.both.argtypes = Both, (ctypes.c_void_p, ctypes.c_void_p)
    x, y = np.arange(4, dtype=np.float32), np.array([5, 6], np.int64)
    assert c.scale(x.ctypes.data, 10) == x.ctypes.data
    np.testing.assert_array_equal(x, [0, 10, 20, 30])
    both = c.both(x.ctypes.data, y.ctypes.data)
    assert (both.x, both.sum) == (x.ctypes.data, 11)
    np.testing.assert_array_equal(x, [0, 20, 40, 63])
    np.testing.assert_array_equal(y, [11, 6])


def test_from_python_as_ever(library: Path) -> None:
    loaded = offload.load(library)
    loaded.use("host")
    x, y = np.arange(4, dtype=np.float32), np.array([5, 6], np.int64)
    result, total = loaded.both(x, y)
    np.testing.assert_array_equal(result, [0, 2, 4, 9])
    assert total == 11


def test_the_option_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text("func.func @f(%x: memref<4xf32>) { return }")
    for options, symbol in ((["--bare-pointers-for-host"], "void @f(ptr %0)"), ([], "void @f(ptr %0, ptr %1, i64")):
        done = command("build", "p.mlir", "-q", "--emit", "host-llvm", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert symbol in done.stdout.replace(" readnone captures(none)", "")


def test_sizes_must_be_known() -> None:
    with pytest.raises(CompileError, match=r"bare pointers are not possible here: 'memref<\?xf32>'") as caught:
        offload.compile(EXAMPLES / "saxpy.mlir", bare_pointers_for_host=True)
    assert caught.value.diagnostics[0].line == 2


STRUCTS = {
    "a": ("index", "i32", "int64_t", "int", 5, 6),
    "b": ("i8", "i64", "int8_t", "int64_t", -5, 6),
    "c": ("f64", "f64", "double", "double", 1.5, 2.5),
}


def test_two_results_are_a_struct_of_c(tmp_path: Path) -> None:
    program, caller = "", "#include <stdint.h>\n#include <stdio.h>\nint main(void) {\n"
    for name, (first, second, of_first, of_second, one, two) in STRUCTS.items():
        program += (
            f"func.func private @of_c_{name}({first}, {second}) -> ({first}, {second})\n"
            f"func.func @{name}() -> ({first}, {second}) {{\n  %0 = arith.constant {one} : {first}\n"
            f"  %1 = arith.constant {two} : {second}\n  %2:2 = call @of_c_{name}(%0, %1) : ({first}, {second}) -> "
            f"({first}, {second})\n  return %2#0, %2#1 : {first}, {second}\n}}\n"
        )
        kind = f"struct {name} {{ {of_first} x; {of_second} y; }};\n"
        caller = (
            f"#include <stdint.h>\n{kind}struct {name} {name}(void);\n"
            f"struct {name} of_c_{name}({of_first} x, {of_second} y) {{ struct {name} r = {{x, y}}; return r; }}\n"
            + caller
            + f'  {{ struct {name} r = {name}(); printf("%g %g\\n", (double)r.x, (double)r.y); }}\n'
        )
    (tmp_path / "p.mlir").write_text(program)
    (tmp_path / "c.c").write_text(caller + "}\n")
    subprocess.run(["cc", "-O2", "-c", "-fPIC", "-o", "c.o", "c.c"], cwd=tmp_path, check=True)
    offload.build(tmp_path / "p.mlir", tmp_path / "p.so", objects=[tmp_path / "c.o"], bare_pointers_for_host=True)
    subprocess.run(["cc", "-O2", "-o", "main", "c.c", "p.so", "-Wl,-rpath,$ORIGIN"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:-1] == [f"{one:g} {two:g}" for *_, one, two in STRUCTS.values()]


@pytest.mark.parametrize("results", ["i32, i32", "i32, f32", "f32, f32", "i64, f64", "i64, i64, i64", "index, i1"])
def test_structs_that_c_returns_another_way(results: str) -> None:
    kinds = results.split(", ")
    taken = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(kinds))
    given = ", ".join(f"%{number}" for number in range(len(kinds)))
    defined = f"func.func @f({taken}) -> ({results}) {{ return {given} : {results} }}\n"
    called = f"func.func @f() {{\n  %r:{len(kinds)} = call @g() : () -> ({results})\n  return\n}}\n"
    for program in (defined, f"func.func private @g() -> ({results})\n{called}"):
        with pytest.raises(CompileError, match="C returns a struct of these results another way") as caught:
            offload.compile(program, bare_pointers_for_host=True)
        assert caught.value.diagnostics[0].line == 1


def test_booleans_of_c(tmp_path: Path) -> None:
    """0 or 1 in a whole byte, as results and as arguments, with any interface; not the lowest bit beside others."""
    (tmp_path / "p.mlir").write_text(
        "func.func private @ask(i1) -> i32 attributes {llvm.emit_c_interface}\n"
        "func.func @odd(%x: i32) -> i1 {\n  %r = arith.trunci %x : i32 to i1\n  return %r : i1\n}\n"
        "func.func @asked(%x: i32) -> i32 {\n  %b = arith.trunci %x : i32 to i1\n"
        "  %r = call @ask(%b) : (i1) -> i32\n  return %r : i32\n}\n"
    )
    (tmp_path / "ask.c").write_text("int _mlir_ciface_ask(unsigned char x) { return x; }\n")
    subprocess.run(["cc", "-O2", "-c", "-fPIC", "-o", "ask.o", "ask.c"], cwd=tmp_path, check=True)
    c = ctypes.CDLL(str(offload.build(tmp_path / "p.mlir", tmp_path / "p.so", objects=[tmp_path / "ask.o"])))
    for name in ("odd", "_mlir_ciface_odd", "asked", "_mlir_ciface_asked"):
        function = c[name]
        function.restype = ctypes.c_uint8 if "odd" in name else ctypes.c_int32
        assert [function(value) for value in (2, 3, 254, 255, -2)] == [0, 1, 0, 1, 0], name


def test_complex_numbers_of_c() -> None:
    with pytest.raises(CompileError, match=r"C passes 'complex<f32>' another way than this function"):
        offload.compile("func.func @f(%x: complex<f32>) { return }", bare_pointers_for_host=True)


def test_a_c_interface_is_left_alone() -> None:
    """A declaration that asks for MLIR's own C interface is called through that."""
    (host,) = emit(
        """
        func.func private @show(%x: memref<*xf32>) attributes {llvm.emit_c_interface}
        func.func @f(%x: memref<4xf32>) {
          %u = memref.cast %x : memref<4xf32> to memref<*xf32>
          call @show(%u) : (memref<*xf32>) -> ()
          return
        }
        """,
        "host-llvm",
        bare_pointers_for_host=True,
    )
    assert b"call void @_mlir_ciface_show(" in host.data
