"""Memory that cannot be: sizes below zero, more bytes than 63 bits count, more than a stack holds, in no space of the
host's. Each is an error at its line, when it is built or when it runs; nothing is written outside of it."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest
from compiling import emit, on_host

import offload
from offload import CompileError, DeviceError
from offload.runtime import Library


def uses(allocation: str, free: str = "") -> str:
    """A function that allocates on its third line, writes and reads the first element."""
    return f"""\
func.func @f(%n: index, %m: index) -> f32 {{
  %c0 = arith.constant 0 : index
  %x = {allocation} : memref<?x?xf32>
  %one = arith.constant 1.0 : f32
  memref.store %one, %x[%c0, %c0] : memref<?x?xf32>
  %r = memref.load %x[%c0, %c0] : memref<?x?xf32>
  {free}
  return %r : f32
}}
"""


PROGRAMS = {
    "gpu.alloc host_shared": uses("gpu.alloc host_shared (%n, %m)", "gpu.dealloc %x : memref<?x?xf32>"),
    "memref.alloc": uses("memref.alloc(%n, %m)", "memref.dealloc %x : memref<?x?xf32>"),
    "memref.alloca": uses("memref.alloca(%n, %m)"),
    "gpu.alloc": """\
func.func @f(%n: index, %m: index) -> f32 {
  %one = arith.constant 1.0 : f32
  %x = gpu.alloc (%n, %m) : memref<?x?xf32>
  gpu.memset %x, %one : memref<?x?xf32>, f32
  gpu.dealloc %x : memref<?x?xf32>
  return %one : f32
}
""",
    "of a kernel": """\
func.func @f(%n: index, %m: index) -> f32 {
  %c0 = arith.constant 0 : index
  %x = memref.alloc(%n, %m) : memref<?x?xf32>
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%x : memref<?x?xf32>)
  %r = memref.load %x[%c0, %c0] : memref<?x?xf32>
  memref.dealloc %x : memref<?x?xf32>
  return %r : f32
}
""",
}

TOO_LARGE = [(2**62, 1), (2**32, 2**32), (2**31, 2**31), (2**61, 2), (2**63 - 1, 3), (2**31, 2**30)]
NEGATIVE = [(-1, 1), (-1, -1), (0, -5), (-(2**63), 2)]


@functools.cache
def library(name: str) -> Library:
    return on_host(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sizes", [*TOO_LARGE, *NEGATIVE])
def test_sizes_that_cannot_be(name: str, sizes: tuple[int, int]) -> None:
    words = f"an allocation of shape ({sizes[0]}, {sizes[1]}) with elements of 4 bytes: sizes must not be negative"
    with pytest.raises(DeviceError) as caught:
        library(name).f(*sizes)
    assert str(caught.value).startswith(f"<string>:3: {words}")
    assert library(name).f(3, 5) == 1


@pytest.mark.parametrize("name", ["gpu.alloc", "memref.alloca"])
def test_no_elements_are_no_error(name: str) -> None:
    source = PROGRAMS[name].replace("memref.store %one", "// ").replace("%r = memref.load", "// ")
    assert on_host(source.replace("return %r", "return %one")).f(0, 2**62) == 1


def test_more_than_the_c_library_has() -> None:
    """Two writes at places that the compiler does not know: it cannot do without the memory."""
    both = on_host("""
    func.func @f(%n: index, %i: index, %j: index) -> f32 {
      %x = memref.alloc(%n) : memref<?xf32>
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      memref.store %one, %x[%i] : memref<?xf32>
      memref.store %two, %x[%j] : memref<?xf32>
      %r = memref.load %x[%i] : memref<?xf32>
      memref.dealloc %x : memref<?xf32>
      return %r : f32
    }""")
    with pytest.raises(DeviceError, match=r"^<string>:3: there is no memory for this allocation"):
        both.f(2**60, 0, 1)
    assert both.f(5, 3, 4) == 1


def test_more_than_the_stack_has() -> None:
    with pytest.raises(DeviceError, match=r"^<string>:3: memref.alloca of shape \(65536, 65536\) takes 17179869184 b"):
        library("memref.alloca").f(65536, 65536)
    assert library("memref.alloca").f(100, 1000) == 1


def test_an_unused_allocation_still_goes() -> None:
    source = "func.func @f(%n: index) {\n  %x = memref.alloc(%n) : memref<?xf32>\n  memref.dealloc %x : memref<?xf32>\n"
    (code,) = emit(source + "  return\n}", "host-llvm")
    assert b"call ptr @malloc" not in code.data


STATIC = {
    "memref.alloc() : memref<4611686018427387904xf32>": "takes more bytes than 63 bits count",
    "memref.alloca() : memref<4611686018427387904xf32>": "takes more bytes than 63 bits count",
    "gpu.alloc () : memref<4294967296x4294967296xf32>": "takes more bytes than 63 bits count",
    "memref.alloca() : memref<1073741824xf32>": "is more than a thread's stack holds: use memref.alloc",
    "gpu.alloc () : memref<4xf32, #gpu.address_space<workgroup>>": "memory of a block cannot be allocated by host code",
    "gpu.alloc () : memref<4xf32, 3>": "give the kernel a `workgroup` attribution",
    "gpu.alloc () : memref<4xf32, #gpu.address_space<private>>": "memory of a thread cannot be allocated by host code",
    "gpu.alloc () : memref<4xf32, 5>": "give the kernel a `private` attribution, or use memref.alloca in it",
}


@pytest.mark.parametrize("allocation", STATIC)
def test_refused_when_built(allocation: str) -> None:
    with pytest.raises(CompileError) as caught:
        emit(f"func.func @f() {{\n  %x = {allocation}\n  return\n}}", "kernels")
    assert STATIC[allocation] in str(caught.value)
    assert caught.value.diagnostics[0].line == 2


def test_memory_of_a_kernel_that_is_too_large() -> None:
    source = """
    func.func @f(%x: memref<4xf32>) {
      %c1 = arith.constant 1 : index
      gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
          threads(%d, %e, %t) in (%j = %c1, %k = %c1, %l = %c1)
          workgroup(%w : memref<4611686018427387904xf32, #gpu.address_space<workgroup>>) {
        %v = memref.load %w[%a] : memref<4611686018427387904xf32, #gpu.address_space<workgroup>>
        memref.store %v, %x[%a] : memref<4xf32>
        gpu.terminator
      }
      return
    }"""
    with pytest.raises(CompileError, match="takes more bytes than 63 bits count"):
        emit(source, "kernels")


def test_stack_of_a_kernel_that_is_too_large() -> None:
    """Kernels have no memref.alloc, which host code is told to use."""
    source = """
    func.func @f(%x: memref<4xf32>, %n: index) {
      %c1 = arith.constant 1 : index
      gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %i = %c1)
          threads(%d, %e, %t) in (%j = %c1, %k = %c1, %l = %c1) {
        %w = memref.alloca() : memref<1073741824xf32>
        %one = arith.constant 1.0 : f32
        memref.store %one, %w[%n] : memref<1073741824xf32>
        %v = memref.load %w[%a] : memref<1073741824xf32>
        memref.store %v, %x[%a] : memref<4xf32>
        gpu.terminator
      }
      return
    }"""
    with pytest.raises(CompileError, match="a thread's stack holds: use an argument that the host allocates") as caught:
        emit(source, "kernels")
    assert caught.value.diagnostics[0].line == 6


def test_numbers_of_spaces_are_the_hosts_own_memory_in_host_code() -> None:
    library = offload.compile("""
    func.func @f(%x: memref<4xf32, 1>, %i: index) -> f32 {
      %d = gpu.alloc () : memref<4xf32, 1>
      gpu.memcpy %d, %x : memref<4xf32, 1>, memref<4xf32, 1>
      %y = memref.alloc () : memref<4xf32, 1>
      gpu.memcpy %y, %d : memref<4xf32, 1>, memref<4xf32, 1>
      %z = memref.memory_space_cast %y : memref<4xf32, 1> to memref<4xf32, #gpu.address_space<global>>
      %v = memref.load %z[%i] : memref<4xf32, #gpu.address_space<global>>
      gpu.dealloc %d : memref<4xf32, 1>
      memref.dealloc %y : memref<4xf32, 1>
      return %v : f32
    }""")
    library.use("host")
    assert library.f(np.arange(4, dtype=np.float32), 3) == 3


@pytest.mark.parametrize(("space", "whose"), [("3", "block"), ("#gpu.address_space<private>", "thread")])
def test_memory_of_kernels_that_host_code_uses(space: str, whose: str) -> None:
    source = f"""memref.global "private" @w : memref<4xf32, {space}>
    func.func private @get(%i: index) -> f32 {{
      %w = memref.get_global @w : memref<4xf32, {space}>
      %v = memref.load %w[%i] : memref<4xf32, {space}>
      return %v : f32
    }}
    func.func @f(%x: memref<4xf32>, %i: index) {{
      %c1 = arith.constant 1 : index
      gpu.launch blocks(%a, %b, %c) in (%g = %c1, %h = %c1, %k = %c1)
          threads(%d, %e, %t) in (%l = %c1, %m = %c1, %n = %c1) {{
        %v = func.call @get(%i) : (index) -> f32
        memref.store %v, %x[%i] : memref<4xf32>
        gpu.terminator
      }}
      return
    }}"""
    emit(source, "host-llvm")
    with pytest.raises(CompileError, match=f"'w' is memory of a {whose}, and this is host code") as caught:
        emit(source.replace("private @get", "@get"), "host-llvm")
    assert caught.value.diagnostics[0].line == 3


SCOPE = """
func.func @f(%n: index, %h: f8E4M3FN) -> (index, f8E4M3FN, f32) {
  %zero = arith.constant 0 : index
  %r:3 = memref.alloca_scope -> (index, f8E4M3FN, f32) {
    %a = memref.alloca(%n) : memref<?xindex>
    memref.store %n, %a[%zero] : memref<?xindex>
    %v = memref.load %a[%zero] : memref<?xindex>
    %wide = arith.extf %h : f8E4M3FN to f32
    memref.alloca_scope.return %v, %h, %wide : index, f8E4M3FN, f32
  }
  %next = arith.addi %r#0, %n : index
  return %next, %r#1, %r#2 : index, f8E4M3FN, f32
}
"""


def test_a_scope_of_host_code_gives_numbers_that_llvm_has_not() -> None:
    half = ml_dtypes.float8_e4m3fn(1.5)
    assert on_host(SCOPE).f(7, half) == (14, half, 1.5)
