"""Kernels that a compiler for one vendor has lowered and written into the program's own module, as Triton's does."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import shared
from emulator.on_device import compiled, emulated

import offload

# Memory of the block whose size the launch gives, a table that host code reads, too, and a helper.
PROGRAM = """
module attributes {{"ttg.num-warps" = 4 : i32, ttg.shared = 512 : i32}} {{
  llvm.mlir.global external @global_smem() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @table(dense<[3.0, 5.0]> : tensor<2xf32>) : !llvm.array<2 x f32>
  llvm.func internal @scaled(%x: f32, %which: i32) -> f32 {{
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %place = llvm.getelementptr %table[%which] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %factor = llvm.load %place : !llvm.ptr -> f32
    %result = llvm.fmul %x, %factor : f32
    llvm.return %result : f32
  }}
  llvm.func {convention} @turned(%in: !llvm.ptr<1> {{tt.divisibility = 16 : i32}}, %out: !llvm.ptr<1>, %which: i32)
      attributes {{noinline = false{mark}}} {{
    %t = {thread} : i32
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %from : !llvm.ptr<1> -> f32
    %block = llvm.mlir.addressof @global_smem : !llvm.ptr<3>
    %mine = llvm.getelementptr %block[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %x, %mine : f32, !llvm.ptr<3>
    {barrier}
    %last = llvm.mlir.constant(127 : i32) : i32
    %other = llvm.sub %last, %t : i32
    %theirs = llvm.getelementptr %block[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %y = llvm.load %theirs : !llvm.ptr<3> -> f32
    %z = llvm.call @scaled(%y, %which) : (f32, i32) -> f32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %z, %to : f32, !llvm.ptr<1>
    llvm.return
  }}
  llvm.func @second() -> f32 {{
    %one = llvm.mlir.constant(1 : i32) : i32
    %x = llvm.mlir.constant(1.0 : f32) : f32
    %y = llvm.call @scaled(%x, %one) : (f32, i32) -> f32
    llvm.return %y : f32
  }}
}}
"""
NVIDIA = PROGRAM.format(
    convention="",
    mark=", nvvm.kernel = 1 : ui1, nvvm.reqntid = array<i32: 128>",
    thread="nvvm.read.ptx.sreg.tid.x",
    barrier="nvvm.barrier0",
)
AMD = PROGRAM.format(
    convention="amdgpu_kernelcc",
    mark="",
    thread="rocdl.workitem.id.x",
    barrier="rocdl.s.waitcnt 0\n    rocdl.s.barrier",
)


@pytest.mark.parametrize("program, chip", [(NVIDIA, "sm_90"), (AMD, "gfx90a"), (AMD, "gfx1100")])
def test_kernels_run(program: str, chip: str) -> None:
    x = np.arange(128, dtype=np.float32)
    driver = shared(emulated(chip)[1])
    with driver.chip(chip):
        library = compiled(program, chip)
        given, out = library.device.array(x), library.device.empty(128, np.float32)
        library.kernels.turned[1, 128, None, 512](given, out, 1)
        np.testing.assert_array_equal(out.numpy(), x[::-1] * 5)
        assert library.second() == 5  # on the CPU, with a table of its own
    driver.check()


def test_a_module_of_their_own_has_a_name_of_its_own() -> None:
    """Also where host code has a function of that name."""
    library = offload.compile(NVIDIA.replace("@scaled", "@kernels"), targets=["nvvm:sm_90"])
    assert [(kernel.module, kernel.name) for kernel in library.metadata.kernels] == [("kernels_0", "turned")]
    assert library.second() == 5


KERNEL = """\
llvm.mlir.global internal @counter(0 : i32) : i32
llvm.func @k() attributes {nvvm.kernel} {
  %p = llvm.mlir.addressof @counter : !llvm.ptr
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.store %one, %p : i32, !llvm.ptr
  llvm.return
}
"""
CALLED = "llvm.func @f() {\n  llvm.call @k() : () -> ()\n  llvm.return\n}\n"
SHARED = """\
llvm.func @f() -> i32 {
  %p = llvm.mlir.addressof @counter : !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> i32
  llvm.return %v : i32
}
"""


@pytest.mark.parametrize(
    "program, message",
    [
        (
            KERNEL + CALLED,
            r"p\.mlir:2:1: error: host code calls this kernel or takes its address: give it a gpu\.module",
        ),
        (KERNEL + SHARED, r"p\.mlir:1:1: error: kernels and host code use this memory by name, .*: pass its address"),
    ],
)
def test_what_cannot_be_taken_apart(program: str, message: str) -> None:
    with pytest.raises(offload.CompileError, match=message):
        offload.compile(program, targets=["nvvm:sm_90"], name="p.mlir")


KEPT = """\
llvm.mlir.global appending @llvm.compiler.used() {section = "llvm.metadata"} : !llvm.array<1 x ptr> {
  %none = llvm.mlir.undef : !llvm.array<1 x ptr>
  %p = llvm.mlir.addressof @counter : !llvm.ptr
  %all = llvm.insertvalue %p, %none[0] : !llvm.array<1 x ptr>
  llvm.return %all : !llvm.array<1 x ptr>
}
llvm.func internal @dead() -> i32 {
  %p = llvm.mlir.addressof @counter : !llvm.ptr
  %t = nvvm.read.ptx.sreg.tid.x : i32
  llvm.store %t, %p : i32, !llvm.ptr
  llvm.return %t : i32
}
"""


def test_what_nothing_uses_is_no_host_code() -> None:
    library = offload.compile(KERNEL + KEPT, targets=["nvvm:sm_90"])
    assert [kernel.name for kernel in library.metadata.kernels] == ["k"]


HOST = """\
llvm.mlir.global external @state(42 : i32) : i32
llvm.func @puts(!llvm.ptr) -> i32
llvm.func internal @dead(%p: !llvm.ptr) -> i32 {
  %s = llvm.mlir.addressof @state : !llvm.ptr
  %r = llvm.call @puts(%s) : (!llvm.ptr) -> i32
  llvm.call @k() : () -> ()
  llvm.return %r : i32
}
llvm.func internal @start() {
  %s = llvm.mlir.addressof @state : !llvm.ptr
  %v = llvm.mlir.constant(7 : i32) : i32
  llvm.store %v, %s : i32, !llvm.ptr
  llvm.return
}
llvm.mlir.global internal @first() {section = ".init_array"} : !llvm.ptr {
  %p = llvm.mlir.addressof @start : !llvm.ptr
  llvm.return %p : !llvm.ptr
}
llvm.mlir.global appending @llvm.used() {section = "llvm.metadata"} : !llvm.array<1 x ptr> {
  %none = llvm.mlir.undef : !llvm.array<1 x ptr>
  %p = llvm.mlir.addressof @first : !llvm.ptr
  %all = llvm.insertvalue %p, %none[0] : !llvm.array<1 x ptr>
  llvm.return %all : !llvm.array<1 x ptr>
}
llvm.func @get() -> i32 {
  %s = llvm.mlir.addressof @state : !llvm.ptr
  %v = llvm.load volatile %s : !llvm.ptr -> i32
  llvm.return %v : i32
}
"""


def test_host_code_stays_as_it_is() -> None:
    """What starts with the library and memory of its own; what nobody calls may use anything."""
    library = offload.compile(KERNEL + HOST, targets=["nvvm:sm_90"])
    assert [kernel.name for kernel in library.metadata.kernels] == ["k"]
    assert library.get() == 7


def test_memory_that_kernels_alone_use_goes_with_them() -> None:
    library = offload.compile(KERNEL, targets=["nvvm:sm_90"])
    assert [kernel.name for kernel in library.metadata.kernels] == ["k"]
    assert not library.metadata.functions
