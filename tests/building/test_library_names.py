"""Functions of a program that are named like functions of the C library, which the runtime beside them calls."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host

import offload
from offload import CompileError
from offload.paths import package_file


def called_by_the_runtime() -> list[str]:
    archives = [package_file(f"lib/lib{name}.a") for name in ("mgpu", "offload_builtins")]
    listed = subprocess.run(["nm", "-u", *archives], capture_output=True, text=True, check=True).stdout
    # Some are asked for in a certain version: dlopen@GLIBC_2.2.5.
    names = {line.split()[1].partition("@")[0] for line in listed.splitlines() if line.strip().startswith("U ")}
    return sorted(name for name in names if not name.startswith(("mgpu", "offload_", "_GLOBAL_")))


@pytest.mark.parametrize("name", called_by_the_runtime())
def test_what_the_runtime_calls_is_refused_of_lowered_functions(name: str) -> None:
    with pytest.raises(CompileError, match="the C library has a function of this name") as caught:
        emit(f"\nllvm.func @{name}() {{ llvm.return }}", "kernels")
    assert caught.value.diagnostics[0].line == 2


def test_the_names_are_found() -> None:
    assert {"write", "dlopen", "memcpy", "pthread_mutex_lock"} <= set(called_by_the_runtime())


def test_private_functions_may_have_them() -> None:
    library = on_host(
        """
        func.func private @write(%x: i32) -> i32 {
          %r = arith.addi %x, %x : i32
          return %r : i32
        }
        func.func @f(%x: i32) -> i32 {
          %r = call @write(%x) : (i32) -> i32
          return %r : i32
        }
        """
    )
    assert library.f(4) == 8


SHADOWING = """
func.func private @expf(%x: f32) -> f32 {
  %r = math.exp %x : f32
  return %r : f32
}
func.func private @memcpy(%to: memref<?xf32>, %from: memref<?xf32>) {
  memref.copy %from, %to : memref<?xf32> to memref<?xf32>
  return
}
func.func private @mgpuMine(%x: f32) -> f32 {
  %r = call @expf(%x) : (f32) -> f32
  return %r : f32
}
func.func @f(%x: memref<?xf32>, %to: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  call @memcpy(%to, %x) : (memref<?xf32>, memref<?xf32>) -> ()
  %first = memref.load %to[%c0] : memref<?xf32>
  %there = func.call @mgpuMine(%first) : (f32) -> f32
  memref.store %there, %to[%c0] : memref<?xf32>
  %n = memref.dim %to, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %v = memref.load %to[%tx] : memref<?xf32>
    %e = func.call @expf(%v) : (f32) -> f32
    memref.store %e, %to[%tx] : memref<?xf32>
    gpu.terminator
  }
  return
}
"""


def test_private_functions_of_the_math_library_s_names_are_the_program_s() -> None:
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    to = np.zeros_like(x)
    on_host(SHADOWING).f(x, to)
    expected = np.exp(np.where(np.arange(9) == 0, np.exp(x), x))
    np.testing.assert_allclose(to, expected, rtol=1e-6)


def test_the_others_are_compiled_for_each_target() -> None:
    offload.compile(SHADOWING, targets=ALL_TARGETS)


@pytest.mark.parametrize(
    "name", ["mgpuMine", "mgpuMemAlloc", "_init", "errno", "offload_api", "offload_modules", "__udivti3"]
)
def test_public_functions_are_refused_under_them(name: str) -> None:
    with pytest.raises(CompileError, match="rename the function"):
        emit(f"func.func @{name}() {{ return }}", "kernels")


PUBLIC = """
func.func @exp(%x: memref<?xf64>, %to: memref<?xf64>) {
  linalg.exp ins(%x : memref<?xf64>) outs(%to : memref<?xf64>)
  return
}
func.func @sin(%x: f64) -> f64 {
  %y = math.sin %x : f64
  return %y : f64
}
func.func @malloc(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = arith.addf %x, %x : tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @memcpy(%to: memref<?xf32>, %from: memref<?xf32>) {
  memref.copy %from, %to : memref<?xf32> to memref<?xf32>
  return
}
func.func @write(%x: memref<?xf64>, %to: memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  func.call @exp(%x, %to) : (memref<?xf64>, memref<?xf64>) -> ()
  %first = memref.load %to[%c0] : memref<?xf64>
  %y = func.call @sin(%first) : (f64) -> f64
  %z = math.exp %y : f64
  return %z : f64
}
"""


@pytest.mark.parametrize("opt", [0, 3])
def test_public_functions_may_have_those_of_the_c_library(opt: int) -> None:
    library = on_host(PUBLIC, opt=opt)
    x = np.linspace(-1, 1, 9)
    to = np.zeros_like(x)
    library.exp(x, to)
    np.testing.assert_allclose(to, np.exp(x), rtol=1e-14)
    assert library.sin(1.0) == pytest.approx(np.sin(1.0), rel=1e-14)
    x32, to32 = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    np.testing.assert_array_equal(library.malloc(x32).numpy(), 2 * x32)
    library.memcpy(to32, x32)
    np.testing.assert_array_equal(to32, x32)
    assert library.write(x, to) == pytest.approx(np.exp(np.sin(np.exp(x[0]))), rel=1e-14)


def test_what_they_raise_names_them_as_ever() -> None:
    library = on_host(PUBLIC)
    with pytest.raises(offload.OffloadError, match="exp"):
        library.exp(np.zeros(3), np.zeros(4))
    assert list(library.functions) == ["exp", "sin", "malloc", "memcpy", "write"]


def test_programs_beside_the_library_find_the_c_library_s() -> None:
    """A name that others would be linked to is not exported."""
    path = on_host(PUBLIC).path
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines()}
    assert {"_mlir_ciface_exp", "_mlir_ciface_malloc"} <= names
    assert not {"exp", "sin", "malloc", "memcpy", "write"} & names


def test_c_calls_functions_with_bare_pointers_by_their_names() -> None:
    program = "func.func @f() { return }\nfunc.func @exp(%x: memref<4xf64>) { return }"
    with pytest.raises(CompileError, match="C cannot call this function, as its library has one named 'exp'") as caught:
        offload.compile(program, targets=["host"], bare_pointers_for_host=True)
    assert caught.value.diagnostics[0].line == 2


def test_those_of_the_runtime_are_said_to_be() -> None:
    with pytest.raises(CompileError, match="'mgpu' are those of the runtime's functions: rename the function"):
        emit("func.func @mgpuMine() { return }", "kernels")


@pytest.mark.parametrize("visibility", ["", "private "])
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_names_of_llvm_are_refused_where_they_stand(visibility: str, target: str) -> None:
    with pytest.raises(CompileError) as caught:
        offload.compile(
            f"""
            func.func {visibility}@llvm.mine(%x: f32) -> f32 {{ return %x : f32 }}
            func.func @f(%x: f32) -> f32 {{
              %r = call @llvm.mine(%x) : (f32) -> f32
              return %r : f32
            }}
            """,
            targets=[target],
        )
    (found,) = caught.value.diagnostics
    assert (found.line, found.message) == (2, "llvm.mine: llvm intrinsics cannot be defined!")


@pytest.mark.parametrize("name", ["offload_api", "offload_images_begin", "_init"])
def test_globals_are_refused_under_names_that_the_runtime_looks_for(name: str) -> None:
    with pytest.raises(CompileError, match="rename the global"):
        emit(f"memref.global @{name} : memref<4xi32> = dense<1>", "kernels")


GLOBAL_NAMED_FOR_THE_RUNTIME = """
memref.global "private" constant @offload_modules : memref<4xi32> = dense<[3, 5, 7, 9]>
func.func @f(%x: memref<4xi32>) {
  %numbers = memref.get_global @offload_modules : memref<4xi32>
  linalg.add ins(%x, %numbers : memref<4xi32>, memref<4xi32>) outs(%x : memref<4xi32>)
  return
}
"""


def test_private_globals_have_other_names() -> None:
    x = np.ones(4, np.int32)
    on_host(GLOBAL_NAMED_FOR_THE_RUNTIME).f(x)
    np.testing.assert_array_equal(x, [4, 6, 8, 10])


NAMED_FOR_LOADERS = """
func.func private @_init(%x: i32) -> i32 attributes {no_inline} {
  %r = arith.addi %x, %x : i32
  return %r : i32
}
func.func @f(%x: i32) -> i32 {
  %r = func.call @_init(%x) : (i32) -> i32
  return %r : i32
}
"""


def test_loading_a_library_runs_nothing_of_the_program() -> None:
    """The linker tells loaders to run what is called _init."""
    assert on_host(NAMED_FOR_LOADERS).f(21) == 42


GLOBAL_NAMED_FOR_THE_C_LIBRARY = """
memref.global "private" @{name} : memref<4xf32> = dense<[3.0, 5.0, 7.0, 9.0]>
func.func @f(%x: memref<4xf32>, %n: index) -> f32 {{
  %c0 = arith.constant 0 : index
  %numbers = memref.get_global @{name} : memref<4xf32>
  %v = memref.load %numbers[%c0] : memref<4xf32>
  %m = memref.alloc(%n) : memref<?xf32>
  memref.store %v, %m[%c0] : memref<?xf32>
  %w = memref.load %m[%c0] : memref<?xf32>
  %e = math.exp %w : f32
  memref.store %e, %x[%c0] : memref<4xf32>
  memref.dealloc %m : memref<?xf32>
  return %w : f32
}}
"""


@pytest.mark.parametrize("name", ["malloc", "free", "exp", "expf", "mgpuMine"])
def test_globals_of_names_that_compiled_code_calls(name: str) -> None:
    x = np.zeros(4, np.float32)
    program = GLOBAL_NAMED_FOR_THE_C_LIBRARY.format(name=name)
    assert on_host(program).f(x, 10) == 3
    np.testing.assert_allclose(x, [np.exp(np.float32(3)), 0, 0, 0], rtol=1e-6)
    with pytest.raises(CompileError, match="rename the global"):
        on_host(program.replace('"private" ', ""))
