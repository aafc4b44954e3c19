"""Programs that MLIR's own passes have lowered: host code and kernels in the LLVM dialect, with plain pointers or
descriptors. On the CPU, and under offload run, which takes what mlir-runner takes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiling import command, emit, on_host, tool
from ready import FATBIN, binary, nvvm_object

import offload
from offload.errors import CompileError

# What mlir-opt makes of host code, the kernel's launch among it.
PASSES = ("convert-scf-to-cf", "gpu-to-llvm", "convert-to-llvm", "reconcile-unrealized-casts")

PLAIN = """
module attributes {{gpu.container_module}} {{
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr, %y: !llvm.ptr) attributes {{gpu.kernel}} {{
    %t = gpu.thread_id x
    %i = builtin.unrealized_conversion_cast %t : index to i64
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    llvm.store %v, %q : f32, !llvm.ptr
    llvm.return
  }}
  gpu.func @words(%x: memref<64xf32>, %y: memref<64xf32>) kernel {{
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<64xf32>
    gpu.return
  }}
}}
func.func @f(%x: {type}, %y: {type}) {{
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : {type}, %y : {type})
  return
}}
func.func @g(%x: memref<64xf32>, %y: memref<64xf32>) {{
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @m::@words blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<64xf32>, %y : memref<64xf32>)
  return
}}
}}
"""


@pytest.mark.parametrize("bare", [False, True])
def test_a_launch_passes_what_a_lowered_kernel_takes(bare: bool) -> None:
    """Plain pointers: descriptors would put the first array's second word where the second array belongs."""
    library = offload.compile(PLAIN.format(type="memref<64xf32>"), targets=["host"], bare_pointers=bare)
    for function in (library.f, library.g):
        x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        function(x, y)
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("kind", ["memref<?xf32>", "memref<64xf32, strided<[2]>>", "memref<*xf32>"])
def test_a_plain_pointer_has_no_sizes(kind: str) -> None:
    with pytest.raises(CompileError, match=f"passes '{re.escape(kind)}' to a kernel that takes a plain pointer"):
        on_host(PLAIN.format(type=kind))


def table(parameters: str) -> str:
    return f'kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void ({parameters})>>]>, '


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(("parameters", "count"), [("ptr, f32", 2), ("ptr, ptr, i64, i64, i64, f32", 6)])
def test_the_kernel_table_of_compiled_code_says_what_it_takes(parameters: str, count: int, bare: bool) -> None:
    """Where the code itself does not."""
    program = binary(nvvm_object("sm_90", FATBIN, "", table(parameters)))
    program = program.replace("memref<?xf32>", "memref<4xf32>")
    (code,) = emit(program, "host-llvm", ["nvvm:sm_90"], bare_pointers=bare)
    launch = re.search(r"call void @mgpuKernelLaunch\(.*, i64 (\d+), i32 1\)", code.data.decode())
    assert launch and int(launch[1]) == count
    library = offload.compile(program, targets=["nvvm:sm_90"], bare_pointers=bare)
    assert library.metadata.kernels[0].bare_pointers is (count == 2)
    with pytest.raises(CompileError, match=r"passes 6 words .* but its kernel, which is lowered already, has 3"):
        offload.compile(program.replace(parameters, "ptr, f32, f32"), targets=["nvvm:sm_90"])


FUNCTIONS = """
llvm.func @printI64(i64)
llvm.func @printNewline()
llvm.func @add(%a: i32, %b: i32) -> i32 {
  %c = llvm.add %a, %b : i32
  llvm.return %c : i32
}
llvm.func @half(%a: f16) -> f16 {
  %c = llvm.fadd %a, %a : f16
  llvm.return %c : f16
}
llvm.func @less(%a: i32, %b: i32) -> i1 {
  %c = llvm.icmp "slt" %a, %b : i32
  llvm.return %c : i1
}
llvm.func @first(%x: !llvm.ptr) -> f32 {
  %c = llvm.load %x : !llvm.ptr -> f32
  llvm.return %c : f32
}
llvm.func @pair(%a: i32) -> !llvm.struct<(i32, i32)> {
  %u = llvm.mlir.undef : !llvm.struct<(i32, i32)>
  llvm.return %u : !llvm.struct<(i32, i32)>
}
llvm.func @copied(%x: !llvm.ptr {llvm.byval = i64}) {
  llvm.return
}
llvm.func fastcc @odd(%a: i32) -> i32 {
  llvm.return %a : i32
}
llvm.func internal @hidden(%a: i32) -> i32 {
  llvm.return %a : i32
}
llvm.func hidden @unseen(%a: i32) -> i32 {
  llvm.return %a : i32
}
llvm.func linkonce_odr @merged(%a: i32) -> i32 {
  llvm.return %a : i32
}
func.func @source(%a: i32) -> i32 {
  return %a : i32
}
llvm.func @_mlir_ciface_other(%a: i32) -> i32 {
  llvm.return %a : i32
}
llvm.func @main() -> i32 {
  %c = llvm.mlir.constant(42 : i64) : i64
  llvm.call @printI64(%c) : (i64) -> ()
  llvm.call @printNewline() : () -> ()
  %d = llvm.mlir.constant(7 : i32) : i32
  llvm.return %d : i32
}
"""


def test_functions_of_numbers_and_addresses_are_called() -> None:
    library = on_host(FUNCTIONS)
    assert list(library.functions) == ["add", "half", "less", "first", "source", "main"]
    assert (library.add(2, 3), library.half(1.5), library.source(4)) == (5, 3, 4)
    assert (library.less(1, 2), library.less(2, 1)) == (True, False)
    x = np.array([2.5], np.float32)
    assert library.first(x.ctypes.data) == 2.5


def test_a_lowered_main_runs(tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text(FUNCTIONS)
    done = command("run", "x.mlir", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n7\n", "")


HOST = """
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %c0 = arith.constant 0 : index
  %n = arith.constant 5 : index
  %v = arith.constant 2.5 : f32
  %x = memref.alloc(%n) : memref<?xf32>
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] (%n) : memref<?xf32>
  %t2 = gpu.memset async [%t1] %d, %v : memref<?xf32>, f32
  %t3 = gpu.memcpy async [%t2] %x, %d : memref<?xf32>, memref<?xf32>
  %t4 = gpu.dealloc async [%t3] %d : memref<?xf32>
  gpu.wait [%t4]
  %u = memref.cast %x : memref<?xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  memref.dealloc %x : memref<?xf32>
  return
}
"""


def prints_its_numbers(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_text(text)
    done = command("run", "x.mlir", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("data = \n[2.5,  2.5,  2.5,  2.5,  2.5]\n")


def test_what_mlir_opt_lowered_for_mlir_runner_runs(tmp_path: Path) -> None:
    """Its calls of mgpuStreamCreate and the others reach the library's own runtime."""
    text = tool("mlir-opt", "-", *(f"--{one}" for one in PASSES), given=HOST)
    assert "llvm.func @main()" in text
    assert "llvm.call @mgpuMemset32(" in text
    prints_its_numbers(text, tmp_path)


def test_what_mlir_opt_left_beside_it_uses_its_stream(tmp_path: Path) -> None:
    """A copy with two dependencies stays as it is there; the lowered code waits for its stream, and destroys it."""
    given = HOST.replace("async [%t2] %x, %d", "async [%t2, %t0] %x, %d").replace("[%t3] %d", "[%t2] %d")
    text = tool("mlir-opt", "-", *(f"--{one}" for one in PASSES), given=given)
    assert "gpu.memcpy async" in text
    assert "llvm.call @mgpuStreamDestroy(" in text
    prints_its_numbers(text, tmp_path)


STARTED = """
llvm.func @printNewline()
llvm.func @printI64(i64)
llvm.mlir.global_ctors ctors = [@first], priorities = [65535 : i32], data = [#llvm.zero]
llvm.mlir.global_dtors dtors = [@last], priorities = [65535 : i32], data = [#llvm.zero]
llvm.func internal @say(%i: i64) {
  llvm.call @printI64(%i) : (i64) -> ()
  llvm.call @printNewline() : () -> ()
  llvm.return
}
"""


def test_constructors_and_destructors_of_host_code(tmp_path: Path) -> None:
    """They were in sections that no loader runs."""
    functions = "".join(
        f"""llvm.func {visibility} @{name}() {{
  %i = llvm.mlir.constant({number} : i64) : i64
  llvm.call @say(%i) : (i64) -> ()
  llvm.return
}}
"""
        for name, number, visibility in (("first", 1, "internal"), ("main", 2, ""), ("last", 3, "internal"))
    )
    (tmp_path / "p.mlir").write_text(STARTED + functions)
    done = command("run", "p.mlir", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n2\n3\n", "")
