"""Programs that were wrong or refused when others wrote them: each is small, and says what should come of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, emit, emit_text, on_host, tool

import offload
from offload.errors import DeviceError
from offload.runtime.stubs import library_stub

SIZES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 64))
STATIC_AND_DYNAMIC = f"""
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {{
  {SIZES}
  %bytes = arith.constant 256 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) {{
    %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %d = memref.view %m[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
      to memref<64xf32, #gpu.address_space<workgroup>>
    %a = memref.load %x[%t] : memref<?xf32>
    %b = memref.load %y[%t] : memref<?xf32>
    memref.store %a, %w[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    memref.store %b, %d[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c63 = arith.constant 63 : index
    %j = arith.subi %c63, %t : index
    %p = memref.load %w[%j] : memref<64xf32, #gpu.address_space<workgroup>>
    %q = memref.load %d[%j] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %p, %x[%t] : memref<?xf32>
    memref.store %q, %y[%t] : memref<?xf32>
    gpu.terminator
  }}
  return
}}
"""


def test_dynamic_workgroup_memory_lies_behind_the_static() -> None:
    x, y = np.arange(64, dtype=np.float32), np.arange(64, 128, dtype=np.float32)
    on_host(STATIC_AND_DYNAMIC).f(x, y)
    np.testing.assert_array_equal((x, y), (np.arange(64)[::-1], np.arange(64, 128)[::-1]))
    # One that is the module's own would lie before it, in a byte.
    ptx = emit_text(STATIC_AND_DYNAMIC, "isa", ["nvvm:sm_80"])
    assert re.search(r"^\.extern \.shared \.align 16 \.b8 __dynamic_shmem__0\[\];$", ptx, re.MULTILINE)
    library = offload.compile(STATIC_AND_DYNAMIC, targets=["nvvm:sm_80", "rocdl:gfx942", "host"])
    resources = [info.resources["f_kernel"] for info in library.metadata.images]
    assert [each["shared_bytes"] for each in resources] == [256, 256, 256]


ASSERTION_AND_PRINT = """
func.func @f(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%c0] : memref<?xf32>
    %z = arith.constant 0.0 : f32
    %ok = arith.cmpf oge, %v, %z : f32
    cf.assert %ok, "negative"
    gpu.printf "%f\\0A", %v : f32
    gpu.terminator
  }
  return
}
"""


@pytest.mark.parametrize("chip", ["gfx1100", "gfx1103", "gfx11-generic", "gfx1201", "gfx942"])
def test_code_behind_an_assertion(chip: str) -> None:
    """LLVM 22 leaves some of it without machine code where it makes a trap of several instructions (gfx11)."""
    assert emit(ASSERTION_AND_PRINT, "object", [f"rocdl:{chip}"])


@pytest.mark.parametrize("target", ["nvvm:sm_90", "rocdl:gfx942", "rocdl:gfx1100", "host"])
@pytest.mark.parametrize("name", ["saxpy", "reduce", "transpose", "scale", "linear"])
def test_examples_with_narrow_indices(name: str, target: str) -> None:
    assert emit(EXAMPLES / f"{name}.mlir", "object", [f"{target},index=32"])


NARROW = """
gpu.module @m {
  gpu.func @k(%x: memref<4x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c1 : memref<4x?xf32>
    %v = vector.transfer_read %x[%c1, %c0], %zero : memref<4x?xf32>, vector<2x4xf32>
    %w = arith.addf %v, %v : vector<2x4xf32>
    vector.transfer_write %w, %x[%c0, %c0] : vector<2x4xf32>, memref<4x?xf32>
    scf.while (%i = %c0) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      memref.store %zero, %x[%c1, %i] : memref<4x?xf32>
      %next = arith.addi %i, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }
}
"""


@pytest.mark.parametrize("index", [32, 64])
def test_vectors_of_memory_and_loops_where_indices_are_narrow(index: int) -> None:
    """Passes before the one that has the option knew 64 bits only: what they left did not fit together."""
    library = offload.compile(NARROW, targets=[f"{target},index={index}" for target in ALL_TARGETS])
    library.use("host")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = x.copy()
    expected[:2] = 2 * x[1:3]
    expected[1] = 0
    library.kernels.k[1, 1](x)
    np.testing.assert_array_equal(x, expected)


BROADCAST = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %a = gpu.subgroup_broadcast %v, first_active_lane : f32
    memref.store %a, %x[%t] : memref<?xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("chip", ["sm_60", "sm_70", "sm_72", "sm_75"])
def test_the_first_active_lane_on_older_chips(chip: str) -> None:
    """The instruction is in PTX 6.2, newer than what LLVM writes for them by default."""
    assert "activemask.b32" in emit_text(BROADCAST, "isa", [f"nvvm:{chip}"])


@pytest.mark.parametrize("linkage", ["internal", "private", "linkonce", "linkonce_odr", "weak", ""])
def test_functions_of_the_llvm_dialect(linkage: str) -> None:
    text = f"""
llvm.func {linkage} @h(%v: i32) -> i32 {{
  %r = llvm.add %v, %v : i32
  llvm.return %r : i32
}}
func.func @f(%v: i32) -> i32 {{
  %r = llvm.call @h(%v) : (i32) -> i32
  return %r : i32
}}
"""
    assert on_host(text).f(4) == 8


def launched(blocks: str, threads: str) -> str:
    return f"""
func.func @f(%x: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = {blocks}, %gy = {blocks}, %gz = {blocks})
             threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = {threads}, %sz = {threads}) {{
    %v = memref.load %x[%c0] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%c0] : memref<?xf32>
    gpu.terminator
  }}
  return
}}
"""


def test_blocks_of_more_threads_than_32_bits_count() -> None:
    with pytest.raises(DeviceError, match="the most are 1024 threads"):
        on_host(launched("%c1", "%c2048")).f(np.zeros(1, np.float32))


def test_blocks_without_threads() -> None:
    assert len(emit(launched("%c1", "%c0"), "object", ALL_TARGETS)) == len(ALL_TARGETS)


def test_what_is_only_read_may_be_read_only(built: dict[str, Path]) -> None:
    library = offload.load(built["saxpy"])
    library.use("host")
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    library.saxpy(2.0, offload.stage(x, back=False), offload.stage(y))
    np.testing.assert_array_equal(y, 2 * x)
    library.saxpy(2.0, x, y)  # which is known of it
    np.testing.assert_array_equal(y, 4 * x)
    with pytest.raises(offload.SignatureError, match="read-only"):
        library.saxpy(2.0, y, offload.stage(x))
    x = x[::-1]
    with pytest.raises(offload.SignatureError, match="not contiguous"):
        library.saxpy(2.0, x, y)


def test_numbers_that_differ_in_their_sign_need_no_copy() -> None:
    text = "func.func @f(%x: memref<?xi32>) { return }"
    with pytest.raises(offload.SignatureError, match=re.escape("x.view('int32')")):
        on_host(text).f(np.zeros(1, np.uint32))
    with pytest.raises(offload.SignatureError, match=re.escape("x.astype('int32')")):
        on_host(text).f(np.zeros(1, np.int64))


def test_arguments_called_as_methods_call_theirs() -> None:
    library = on_host("func.func @f(%stream: i32, %self: i32) -> i32 { return %self : i32 }")
    assert library.f(stream=1, self=2) == 2
    stub = library_stub("k", library.metadata)
    assert "def __call__(_offload_self, stream: " in stub
    compile(stub, "k.pyi", "exec")


@pytest.mark.parametrize("source", [["a.mlir", "b.mlir"], bytearray(b"func.func @f() { return }"), None])
def test_what_is_no_program(source: Any) -> None:
    with pytest.raises(TypeError, match="source is the path of one MLIR file, the text of a program or a module of "):
        offload.compile(source)


@pytest.mark.parametrize("source", ["", b""])
def test_an_empty_text_is_no_program(source: Any) -> None:
    with pytest.raises(offload.OffloadError, match="source is empty: it is the path of one MLIR file or the text"):
        offload.compile(source)


def test_texts_and_bytes_are_never_compared(tmp_path: Path) -> None:
    """Python can make that an error (-bb), as some projects' tests do."""
    text = "func.func @f() -> i32 { %c = arith.constant 3 : i32 return %c : i32 }"
    code = f"import offload; print(offload.compile({text.encode()!r}).f())"
    command = [sys.executable, "-bb", "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_a_program_of_bytes(tmp_path: Path) -> None:
    text = "func.func @f(%x: i32) -> i32 { return %x : i32 }"
    (tmp_path / "f.mlir").write_text(text)
    bytecode = tmp_path / "f.mlirbc"
    tool("mlir-opt", "--emit-bytecode", tmp_path / "f.mlir", "-o", bytecode)
    for source in (text.encode(), bytecode.read_bytes()):
        assert offload.compile(source).f(7) == 7
    with pytest.raises(offload.CompileError, match=r"^<bytes>:1:1: error: "):
        offload.compile(b"x")


DOTS = """module attributes {gpu.container_module} {
gpu.module @a.b { gpu.func @c(%x: memref<1xi32>) kernel {
  %0 = arith.constant 0 : index
  %v = arith.constant 1 : i32
  memref.store %v, %x[%0] : memref<1xi32>
  gpu.return } }
gpu.module @a { gpu.func @b.c(%x: memref<1xi32>) kernel {
  %0 = arith.constant 0 : index
  %v = arith.constant 2 : i32
  memref.store %v, %x[%0] : memref<1xi32>
  gpu.return } }
func.func @f(%x: memref<1xi32>, %y: memref<1xi32>) {
  %c1 = arith.constant 1 : index
  gpu.launch_func @a.b::@c blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<1xi32>)
  gpu.launch_func @a::@b.c blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%y : memref<1xi32>)
  return
} }"""


def test_kernels_whose_names_differ_in_the_place_of_a_dot() -> None:
    x, y = np.zeros((2, 1), np.int32)
    on_host(DOTS).f(x, y)
    assert (x[0], y[0]) == (1, 2)


MEMORY_OF_THAT_NAME = """module attributes {gpu.container_module} {
gpu.module @m {
  memref.global "private" @k_0 : memref<1xi32, #gpu.address_space<workgroup>>
  gpu.func @k(%x: memref<2xi32>) workgroup(%w: memref<1xi32, #gpu.address_space<workgroup>>) kernel {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %a = arith.constant 1 : i32
    %b = arith.constant 2 : i32
    %g = memref.get_global @k_0 : memref<1xi32, #gpu.address_space<workgroup>>
    memref.store %a, %w[%0] : memref<1xi32, #gpu.address_space<workgroup>>
    memref.store %b, %g[%0] : memref<1xi32, #gpu.address_space<workgroup>>
    %p = memref.load %w[%0] : memref<1xi32, #gpu.address_space<workgroup>>
    %q = memref.load %g[%0] : memref<1xi32, #gpu.address_space<workgroup>>
    memref.store %p, %x[%0] : memref<2xi32>
    memref.store %q, %x[%1] : memref<2xi32>
    gpu.return
  }
} }"""


def test_memory_with_the_name_of_a_kernels_own() -> None:
    x = np.zeros(2, np.int32)
    on_host(MEMORY_OF_THAT_NAME).kernels.k[1, 1](x)
    np.testing.assert_array_equal(x, [1, 2])


PUSH = """
llvm.func @push(%head: !llvm.ptr, %node: !llvm.ptr) {
  %0 = llvm.load %head : !llvm.ptr -> !llvm.ptr
  llvm.br ^loop(%0 : !llvm.ptr)
^loop(%old: !llvm.ptr):
  llvm.store %old, %node : !llvm.ptr, !llvm.ptr
  %r = llvm.cmpxchg %head, %old, %node acq_rel monotonic : !llvm.ptr, !llvm.ptr
  %new = llvm.extractvalue %r[0] : !llvm.struct<(ptr, i1)>
  %ok = llvm.extractvalue %r[1] : !llvm.struct<(ptr, i1)>
  llvm.cond_br %ok, ^end, ^loop(%new : !llvm.ptr)
^end:
  llvm.return
}"""


def test_a_pointer_is_exchanged() -> None:
    assert "cmpxchg ptr" in emit_text(PUSH, "host-llvm")


def test_an_assertion_in_a_kernel_with_a_percent_sign() -> None:
    program = """gpu.module @m { gpu.func @"%x"(%b: i1) kernel { cf.assert %b, "100 % no"  gpu.return } }"""
    assert b"%%x: block" in emit(program, "lowered", ["rocdl:gfx942"])[0].data


LAUNCHED_FROM_LLVM = """
llvm.func @fill(%p: !llvm.ptr, %n: i64, %v: f32) {
  %c1 = arith.constant 1 : index
  %blocks = arith.index_cast %n : i64 to index
  %ready = gpu.wait async
  %done = gpu.launch async [%ready] blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
                                    threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %i = arith.index_cast %bx : index to i64
    %at = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v, %at : f32, !llvm.ptr
    gpu.terminator
  }
  gpu.wait [%done]
  llvm.return
}
func.func @run(%x: memref<?xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %size = memref.dim %x, %c0 : memref<?xf32>
  %n = arith.index_cast %size : index to i64
  %address = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
  %word = arith.index_cast %address : index to i64
  %p = llvm.inttoptr %word : i64 to !llvm.ptr
  llvm.call @fill(%p, %n, %v) : (!llvm.ptr, i64, f32) -> ()
  return
}"""


def test_a_function_of_the_llvm_dialect_launches_asynchronously() -> None:
    x = np.zeros(5, np.float32)
    on_host(LAUNCHED_FROM_LLVM).run(x, 2.5)
    assert (x == 2.5).all()


def test_a_c_interface_that_asks_for_a_copy_of_its_function(tmp_path: Path) -> None:
    """Ours call their functions, and a call cannot be both."""
    (tmp_path / "a.mlir").write_text("""
llvm.func @f(%x: f32) -> f32 {
  %r = llvm.fadd %x, %x : f32
  llvm.return %r : f32
}
llvm.func @_mlir_ciface_f(%x: f32) -> f32 {
  %r = llvm.call @f(%x) {always_inline} : (f32) -> f32
  llvm.return %r : f32
}
""")
    assert "call float @f" not in emit_text(tmp_path / "a.mlir", "host-llvm")
