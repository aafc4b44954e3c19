"""Kernels of the LLVM dialect that take memory by value (llvm.byval, llvm.byref), and what launches pass to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host, python
from cpu_levels import levels_here
from emulator.driver import shared
from emulator.on_device import compiled, emulated

import offload

_HELD = "!llvm.struct<(i32, f32, i64, array<3 x i8>)>"
_BY_VALUE = f"!llvm.ptr {{llvm.byval = {_HELD}}}"
_PROGRAM = """
module attributes {{gpu.container_module}} {{
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr, %s: {argument}, %n: i32) attributes {{gpu.kernel{mark}}} {{
    %pb = llvm.getelementptr %s[0, 1] : ({pointer}) -> {pointer}, {held}
    %pc = llvm.getelementptr %s[0, 2] : ({pointer}) -> {pointer}, {held}
    %pd = llvm.getelementptr %s[0, 3, 2] : ({pointer}) -> {pointer}, {held}
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    {change}
    %a = llvm.load %s : {pointer} -> i32
    %b = llvm.load %pb : {pointer} -> f32
    %c = llvm.load %pc : {pointer} -> i64
    %d = llvm.load %pd : {pointer} -> i8
    %aw = llvm.sext %a : i32 to i64
    %bw = llvm.fptosi %b : f32 to i64
    %dw = llvm.sext %d : i8 to i64
    %nw = llvm.sext %n : i32 to i64
    %s0 = llvm.add %aw, %bw : i64
    %s1 = llvm.add %s0, %c : i64
    %s2 = llvm.add %s1, %dw : i64
    %s3 = llvm.add %s2, %nw : i64
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i64
    llvm.store %s3, %p : i64, !llvm.ptr
    llvm.return
  }}
}}
func.func @f(%x: memref<?xi64>, %a: i32, %b: f32, %c: i64, %d: i8) {{
  %one = arith.constant 1 : index
  %threads = arith.constant 4 : index
  %n = arith.constant 77 : i32
  %u = llvm.mlir.undef : {held}
  %u1 = llvm.insertvalue %a, %u[0] : {held}
  %u2 = llvm.insertvalue %b, %u1[1] : {held}
  %u3 = llvm.insertvalue %c, %u2[2] : {held}
  %u4 = llvm.insertvalue %d, %u3[3, 2] : {held}
  %address = memref.extract_aligned_pointer_as_index %x : memref<?xi64> -> index
  %word = arith.index_cast %address : index to i64
  %px = llvm.inttoptr %word : i64 to !llvm.ptr
  gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%threads, %one, %one)
      args(%px : !llvm.ptr, {passed}, %n : i32)
  return
}}
}}
"""
_PASSED = f"%u4 : {_HELD}"
_EXPECTED = 1000 + 200 + (1 << 40) + 5 + 77


def program(argument: str, *, change: str = "", pointer: str = "!llvm.ptr", passed: str = _PASSED) -> str:
    mark = ", nvvm.kernel" if "nvvm" in argument else ""
    return _PROGRAM.format(argument=argument, held=_HELD, change=change, pointer=pointer, passed=passed, mark=mark)


def run(text: str, chip: str) -> np.ndarray:
    arguments = (np.int32(1000), np.float32(200), np.int64(1 << 40), np.int8(5))
    x = np.zeros(4, np.int64)
    if chip.startswith("host"):
        on_host(text, target=chip).f(x, *arguments)
        return x
    driver = shared(emulated(chip)[1])
    with driver.chip(chip):
        library = compiled(text, chip)
        there = library.device.array(x)
        library.f(there, *arguments)
        x = there.numpy()
    driver.check()
    return x


@pytest.mark.parametrize("chip", ["host", "host,O=0", "gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize(
    ("argument", "pointer"),
    [
        (_BY_VALUE, "!llvm.ptr"),
        (_BY_VALUE.replace("byval", "byref"), "!llvm.ptr"),
        (_BY_VALUE.replace("}", ", llvm.align = 32 : i64}"), "!llvm.ptr"),
        (_BY_VALUE.replace("}", ", nvvm.grid_constant}"), "!llvm.ptr"),
        (f"!llvm.ptr<4> {{llvm.byref = {_HELD}}}", "!llvm.ptr<4>"),
    ],
    ids=["byval", "byref", "aligned", "of the grid", "constant"],
)
def test_the_kernel_finds_what_was_passed(argument: str, pointer: str, chip: str) -> None:
    """The CPU took the value for an address, and AMD's code generator refused it."""
    np.testing.assert_array_equal(run(program(argument, pointer=pointer), chip), np.full(4, _EXPECTED))


@pytest.mark.parametrize("chip", ["host", "host,coroutines", "gfx942", "sm_90"])
def test_the_copy_is_each_threads_own(chip: str) -> None:
    change = """
    %one = llvm.mlir.constant(1 : i32) : i32
    %before = llvm.load %s : !llvm.ptr -> i32
    %more = llvm.add %before, %i : i32
    llvm.store %more, %s : i32, !llvm.ptr
    gpu.barrier
    """
    np.testing.assert_array_equal(run(program(_BY_VALUE, change=change), chip), _EXPECTED + np.arange(4))


def test_python_has_no_such_values() -> None:
    text = program(_BY_VALUE)
    with pytest.raises(KeyError, match=r"a kernel 'k' that Python cannot launch, because of .*struct<\(i32, f32, i64"):
        _ = on_host(text).kernels["k"]
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


@pytest.mark.parametrize(
    ("argument", "passed", "said"),
    [
        (_BY_VALUE, "%px : !llvm.ptr", "takes a value of '!llvm.struct<(i32, f32, i64, array<3 x i8>)>' in memory"),
        (_BY_VALUE, "%n : i32", "in memory of the kernel's own: pass such a value"),
        ("!llvm.ptr", "%n : i32", "is longer, '!llvm.ptr': pass a value of that type"),
    ],
)
def test_a_launch_that_passes_less_than_the_kernel_reads(argument: str, passed: str, said: str) -> None:
    with pytest.raises(offload.CompileError) as caught:
        on_host(program(argument, passed=passed))
    (found,) = caught.value.diagnostics
    assert found.message.startswith("'gpu.launch_func' op passes ")
    assert " to parameter 2 of its kernel, which " in found.message
    assert said in found.message
    assert found.line == 40


VECTORS = """module attributes {gpu.container_module} {
gpu.module @m { gpu.func @k(%a: i8, %v: vector<NxF>, %b: i8, %w: vector<NxF>, %x: memref<?xF>) kernel {
  %t = gpu.thread_id x
  %s = vector.reduction <add>, %v : vector<NxF> into F
  %u = vector.reduction <add>, %w : vector<NxF> into F
  %r = arith.subf %s, %u : F
  memref.store %r, %x[%t] : memref<?xF>
  gpu.return
} }
func.func @run(%x: memref<?xF>, %p: memref<NxF>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = arith.constant 7 : i8
  %v = vector.load %p[%c0] : memref<NxF>, vector<NxF>
  %w = arith.addf %v, %v : vector<NxF>
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%a : i8, %v : vector<NxF>, %a : i8, %w : vector<NxF>, %x : memref<?xF>)
  return
} }"""
RUN_VECTORS = """
import sys, numpy as np, offload
for number in (4, 8, 16, 32):
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        text = open(sys.argv[1]).read().replace("NxF", f"{number}x{kind}").replace("xF", f"x{kind}")
        library = offload.compile(text.replace(" F", f" {kind}"), targets=[sys.argv[2]])
        library.use("host")
        x = np.zeros(4, dtype)
        library.run(x, np.ones(number, dtype))
        assert (x == -number).all(), (number, kind, x)
print("done")
"""


@pytest.mark.parametrize("level", levels_here() or ["native"])
@pytest.mark.parametrize("optimized", [0, 3])
def test_vectors_as_arguments_on_the_cpu(optimized: int, level: str, tmp_path: Path) -> None:
    """They are read from wherever the launch has them: aligned loads of what lies elsewhere would end the process."""
    (tmp_path / "vectors.mlir").write_text(VECTORS)
    target = f"host:{level},O={optimized}"
    assert python(RUN_VECTORS, tmp_path / "vectors.mlir", target, cwd=tmp_path) == "done\n"
