"""Functions of the runtime and of MLIR's runner that a program declares itself: with their own types, or refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiling import command

import offload
from offload.errors import CompileError, LinkError

INTERFACE = " attributes {llvm.emit_c_interface}"


def program(name: str, types: str, more: str = "", results: str = "") -> str:
    """Declares a function and calls it with values of its types."""
    values = [f"%v{i} = ub.poison : {type}" for i, type in enumerate(types.split(", "))] if types else []
    operands = ", ".join(f"%v{i}" for i in range(len(values)))
    call = f"{'%r = ' if results else ''}call @{name}({operands}) : ({types}) -> ({results})"
    arrow = f" -> {results}" if results else ""
    return "\n".join(
        [f"func.func private @{name}({types}){arrow}{more}", "func.func @f() {", *values, call, "return", "}"]
    )


def refused(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        offload.compile(text)
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (1, 1)
    return found.message


@pytest.mark.parametrize(
    ("name", "types", "wanted"),
    [
        ("printI64", "i32", "(i64)"),
        ("printU64", "i8", "(i64)"),
        ("printF32", "f64", "(f32)"),
        ("printF64", "f32", "(f64)"),
        ("printF16", "f16", "(i16)"),
        ("printBF16", "bf16", "(i16)"),
        ("printI64", "", "(i64)"),
        ("mgpuModuleLoad", "!llvm.ptr", "(!llvm.ptr, i64) -> !llvm.ptr"),  # before LLVM 18
        ("mgpuMemAlloc", "i64, !llvm.ptr", "(i64, !llvm.ptr, i8) -> !llvm.ptr"),
        ("mgpuSetDefaultDevice", "f32", "(i32)"),
        ("mgpuSpMV", "!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr",  # with a handle first
         "(i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr)"),
        ("mgpuMemHostRegister", "memref<?xf32>, i64", "(!llvm.ptr, i64)"),  # an address for the size
        ("mgpuMemFree", "memref<?xi8>", "(!llvm.ptr, !llvm.ptr)"),  # the same address for the stream
        ("mgpuMemFree", "memref<i8>, !llvm.ptr", "(!llvm.ptr, !llvm.ptr)"),
    ],
)  # fmt: skip
def test_other_types(name: str, types: str, wanted: str) -> None:
    """They printed, allocated and copied whatever the registers held."""
    said = refused(program(name, types))
    assert said.startswith(f"'{name}' is declared with other types than it has, which are {wanted} in the LLVM dialect")


def test_another_result() -> None:
    assert "which are () -> f64" in refused(program("rtclock", "", results="f32"))
    said = refused(program("mgpuStreamCapturing", "!llvm.ptr", results="i32"))
    assert "which are (!llvm.ptr) -> i8 in" in said


@pytest.mark.parametrize(
    ("name", "type", "more", "wanted"),
    [
        ("printMemrefF32", "memref<2xf32>", "", "unranked memrefs"),
        ("printMemrefF32", "memref<2xf32>", INTERFACE, "unranked memrefs"),
        ("printMemrefF32", "memref<*xf64>", "", "elements of the type"),
        ("printMemrefI64", "memref<*xi32>", INTERFACE, "elements of the type"),
        ("printMemrefF16", "memref<*xbf16>", "", "elements of the type"),
        ("printMemrefC32", "memref<*xf32>", "", "elements of the type"),
        ("printMemref2dF32", "memref<2xf32>", INTERFACE, "memrefs of rank 2"),
        ("verifyMemRefF32", "memref<*xf32>, memref<*xf32>", "", "two memrefs that come with one rank: declare it with"),
        ("printMemref1dI32", "memref<*xi32>", INTERFACE, "memrefs of rank 1"),
    ],
)
def test_other_memrefs(name: str, type: str, more: str, wanted: str) -> None:
    """The first ended the process, and verifyMemRefF32 did."""
    assert f"and it goes through {wanted}" in refused(program(name, type, more))


@pytest.mark.parametrize(
    ("name", "types", "more"),
    [
        ("printI64", "index", ""),
        ("printString", "!llvm.ptr", ""),
        ("printMemrefI8", "memref<*xi1>", ""),
        ("printMemrefInd", "memref<*xindex>", INTERFACE),
        ("printMemrefC64", "memref<*xcomplex<f64>>", ""),
        ("printMemrefShapeF32", "memref<*xi8>", ""),
        ("printMemref1dF32", "memref<?xf32>", INTERFACE),
        ("verifyMemRefI64", "memref<*xindex>, memref<*xindex>", INTERFACE),
        ("verifyMemRefF32", "i64, !llvm.ptr, !llvm.ptr", ""),
        ("nanoTime", "", INTERFACE),
        ("mgpuMemHostRegister", "i64, index", ""),
        ("mgpuSetDefaultDevice", "index", ""),
        ("mgpuMemHostRegisterMemRef", "memref<*xf32>, index", ""),
        ("mgpuMemGetDeviceMemRef1dFloat", "memref<?xf32>", ""),
        ("mgpuStreamSynchronize", "i64", ""),
        ("mgpuModuleLoadJIT", "!llvm.ptr, i32, i64", ""),  # LLVM after 22
        ("mgpuLaunchKernel", "!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr", ""),
    ],
)
def test_types_that_fit(name: str, types: str, more: str) -> None:
    offload.compile(program(name, types, more))


def test_no_function_has_that_interface() -> None:
    """It is not the types that are other ones: the runtime has no such function."""
    with pytest.raises(LinkError, match="undefined symbol: _mlir_ciface_mgpuMemHostRegisterMemRef"):
        offload.compile(program("mgpuMemHostRegisterMemRef", "memref<*xf32>, index", INTERFACE))


def test_functions_of_an_object(tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text('#include <stdio.h>\nvoid printI64(int x) { printf("own %d\\n", x); }\n')
    subprocess.run(["cc", "-c", "-fPIC", "own.c"], cwd=tmp_path, check=True)
    (tmp_path / "p.mlir").write_text("""func.func private @printI64(i32)
func.func @main() {
  %c = arith.constant -5 : i32
  call @printI64(%c) : (i32) -> ()
  return
}
""")
    done = command("run", "p.mlir", "--object", "own.o", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "own -5\n", "")
    subprocess.run(["ar", "rc", "own.a", "own.o"], cwd=tmp_path, check=True)
    done = command("run", "p.mlir", "--object", "own.a", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "own -5\n", "")
    (tmp_path / "q.mlir").write_text((tmp_path / "p.mlir").read_text().replace("printI64", "printU64"))
    for file in ("own.o", "own.a"):  # what these do not define is still the runner's
        done = command("run", "q.mlir", "--object", file, cwd=tmp_path)
        assert done.returncode == 1
        assert "error: 'printU64' is declared with other types than it has" in done.stderr
    (tmp_path / "versions").write_text("V1 { global: printI64; };")
    (tmp_path / "named.c").write_text('void own(int x) {}\n__asm__(".symver own, printI64@@V1");\n')
    versions = ["-shared", "-fPIC", "-Wl,--version-script=versions", "-o", "own.so"]
    subprocess.run(["cc", *versions, "named.c"], cwd=tmp_path, check=True)
    offload.build(tmp_path / "p.mlir", tmp_path / "p.so", objects=[tmp_path / "own.so"])
    (tmp_path / "own.mlir").write_text("func.func @printI64(%x: i32) {\n  return\n}\n")
    assert command("run", "p.mlir", "own.mlir", cwd=tmp_path).returncode == 0
