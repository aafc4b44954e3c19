"""What operations that become inline PTX are given: constants, as operands and as conditions, and what they change."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit
from emulator.running import running_on
from operations import kernel

from offload.errors import CompileError

_CONSTANTS = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %at = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
    %number = arith.index_cast %at : index to i64
    %true = arith.constant true
    %one = arith.constant 1 : i32
    %same = arith.constant 1 : i32
    %never = arith.cmpi ne, %one, %same : i32
    %single = arith.constant 1.5 : f32
    %double = arith.constant 2.5 : f64
    %half = arith.constant 0.5 : f16
    %byte = arith.constant 66 : i8
    %pair = arith.constant dense<[0.5, 0.25]> : vector<2xf16>
    %a = nvvm.inline_ptx "add.f32 $0, $1, $1;" ro(%single : f32) -> f32
    %b = nvvm.inline_ptx "add.f64 $0, $1, $1;" ro(%double : f64) -> f64
    %c = nvvm.inline_ptx "add.f16x2 $0, $1, $1;" ro(%pair : vector<2xf16>) -> vector<2xf16>
    %d = nvvm.inline_ptx "selp.b32 $0, $2, 7, $1;" ro(%never, %n : i1, i32) -> i32
    nvvm.inline_ptx "st.global.f32 [$0], $1;" ro(%number, %single : i64, f32), predicate = %true
    nvvm.inline_ptx "st.global.f32 [$0+4], $1;" ro(%number, %single : i64, f32), predicate = %never
    nvvm.inline_ptx "st.global.u8 [$0+7], $1;" ro(%number, %byte : i64, i8)
    %e = nvvm.inline_ptx "add.f16 $0, $1, $1;" ro(%half : f16) -> f16
    %b32 = arith.truncf %b : f64 to f32
    %c16 = vector.extract %c[1] : f16 from vector<2xf16>
    %c32 = arith.extf %c16 : f16 to f32
    %d32 = arith.sitofp %d : i32 to f32
    %all = vector.from_elements %a, %b32, %c32, %d32 : vector<4xf32>
    %c2 = arith.constant 2 : index
    vector.store %all, %x[%c2] : memref<?xf32>, vector<4xf32>
    %c6 = arith.constant 6 : index
    %e32 = arith.extf %e : f16 to f32
    memref.store %e32, %x[%c6] : memref<?xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("options", ["", ",O=0"])
def test_constants_that_inline_ptx_is_given(options: str) -> None:
    """Only integers have a form in the text of an instruction, where MLIR 22 writes what is constant."""
    (cubin,) = emit(_CONSTANTS, "object", [f"nvvm:sm_90{options}"])
    assert cubin.data.startswith(b"\x7fELF")
    x = np.full(7, 1, np.float32)
    with running_on(f"sm_90{options}", _CONSTANTS) as library:
        library.kernels.k[1, 1](x, np.int32(3))
    np.testing.assert_array_equal(x, np.array([1.5, 64, 3, 5, 0.5, 7, 1], np.float32))


_BARRIERS = "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>"


@pytest.mark.parametrize("size", [1, 64])
def test_a_barrier_that_one_thread_makes(size: int) -> None:
    """In blocks of one thread the condition is a constant, which was written into the instruction."""
    source = kernel(
        f"""%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%t = gpu.thread_id x
%first = arith.cmpi eq, %t, %c0 : index
%bar = nvgpu.mbarrier.create -> {_BARRIERS}
nvgpu.mbarrier.init %bar[%c0], %c1, predicate = %first : {_BARRIERS}""",
        "",
    ).replace(" kernel {", f" kernel attributes {{known_block_size = array<i32: {size}, 1, 1>}} {{")
    (cubin,) = emit(source, "object", ["nvvm:sm_90"])
    assert cubin.data.startswith(b"\x7fELF")


_CHANGES = """
gpu.module @m {{
  gpu.func @k(%x: memref<?xi32>) kernel {{
    %i = gpu.thread_id x
    %four = arith.constant 4 : index
    %at = arith.muli %i, %four : index
    %one = arith.constant 1 : i32
    %all = vector.load %x[%at] : memref<?xi32>, vector<4xi32>
    %a = vector.extract %all[0] : i32 from vector<4xi32>
    %b = vector.extract %all[1] : i32 from vector<4xi32>
    %before = arith.subi %one, %a : i32
    {changes}
    %new = vector.from_elements %before, %a, %b, %r : vector<4xi32>
    vector.store %new, %x[%at] : memref<?xi32>, vector<4xi32>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("options", ["", ",O=0"])
@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            'nvvm.inline_ptx "add.s32 $0, $0, $1;" ro(%b : i32) rw(%a : i32)\n%r = arith.addi %a, %b : i32',
            [-4, 12, 7, 19],
        ),
        (
            'nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%a : i32)\n'
            'nvvm.inline_ptx "add.s32 $0, $0, $0;" rw(%a : i32)\n%r = arith.addi %a, %one : i32',
            [-4, 12, 7, 13],
        ),
        (
            'nvvm.inline_ptx "add.s32 $0, $1, $1;" ro(%a : i32) rw(%a : i32)\n%r = arith.addi %a, %a : i32',
            [-4, 10, 7, 20],
        ),
        (
            'nvvm.inline_ptx "sub.s32 $0, $0, $1; add.s32 $1, $1, $0;" rw(%a, %b : i32, i32)\n'
            "%r = arith.addi %a, %b : i32",
            [-4, -2, 5, 3],
        ),
        ('%r = nvvm.inline_ptx "mov.s32 $1, $0; add.s32 $0, $1, 3;" rw(%a : i32) -> i32', [-4, 8, 7, 5]),
        (
            'nvvm.inline_ptx "sub.s32 $0, $0, $1;" ro(%b : i32) rw(%a : i32)\n%r = arith.subi %a, %b : i32',
            [-4, -2, 7, -9],
        ),
        (
            '%r = nvvm.inline_ptx "mov.s32 $1, $2; sub.s32 $0, $0, $3;" ro(%b, %one : i32, i32) rw(%a : i32) -> i32',
            [-4, 4, 7, 7],
        ),
        (
            "%same = arith.cmpi ne, %a, %b : i32\n"
            '%r = nvvm.inline_ptx "sub.s32 $0, $1, $2;" ro(%b, %a : i32, i32), predicate = %same -> i32',
            [-4, 5, 7, 2],
        ),
        (
            "%same = arith.cmpi ne, %a, %b : i32\n"
            '%r = nvvm.inline_ptx "sub.s32 {$rw0}, {$r0}, {$rw0}; mov.s32 {$w0}, 9;" ro(%b : i32) rw(%a : i32), '
            "predicate = %same -> i32",
            [-4, 2, 7, 9],
        ),
        (
            "%never = arith.cmpi eq, %a, %b : i32\n"
            'nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%a : i32), predicate = %never\n%r = arith.addi %a, %b : i32',
            [-4, 5, 7, 12],
        ),
        (
            "%i1 = arith.constant 1 : index\n%i3 = arith.constant 3 : index\n"
            "%r = scf.for %s = %i1 to %i3 step %i1 iter_args(%sum = %a) -> i32 {\n"
            'nvvm.inline_ptx "add.s32 $0, $0, $1;" ro(%b : i32) rw(%sum : i32)\nscf.yield %sum : i32\n}',
            [-4, 5, 7, 19],
        ),
        (
            "%same = arith.addi %a, %b : i32\n%r = arith.addi %a, %b : i32\n"
            'nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%same : i32)',
            [-4, 5, 7, 12],
        ),
        (
            "%n = arith.index_cast %a : i32 to index\n%h = arith.sitofp %b : i32 to f16\n"
            'nvvm.inline_ptx "add.s64 $0, $0, 1; add.f16 $1, $1, $2;" ro(%h : f16) rw(%n, %h : index, f16)\n'
            "%r0 = arith.index_cast %n : index to i32\n%r1 = arith.fptosi %h : f16 to i32\n"
            "%r = arith.addi %r0, %r1 : i32",
            [-4, 5, 7, 20],
        ),
    ],
)
def test_values_that_inline_ptx_changes(changes: str, wanted: list[int], options: str) -> None:
    """What a text changed was lost where it was one value, began as another where there were other operands, and was
    refused where something had used it before; so were results under a condition."""
    x = np.array([5, 7, 0, 0] * 2, np.int32)
    with running_on(f"sm_90{options}", _CHANGES.format(changes=changes)) as library:
        library.kernels.k[1, 2](x)
    assert x.tolist() == wanted * 2


@pytest.mark.parametrize(
    "loop",
    [
        "scf.parallel (%i) = (%c0) to (%n) step (%c1) {\n%v = memref.load %x[%i] : memref<?xi32>\n"
        'nvvm.inline_ptx "add.s32 $0, $0, $1;" ro(%a : i32) rw(%v : i32)\n'
        "memref.store %v, %x[%i] : memref<?xi32>\nscf.reduce\n}",
        'linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} '
        "outs(%x : memref<?xi32>) {\n^bb0(%v: i32):\n"
        'nvvm.inline_ptx "add.s32 $0, $0, $1;" ro(%a : i32) rw(%v : i32)\nlinalg.yield %v : i32\n}',
    ],
)
def test_values_that_inline_ptx_changes_in_parallel_loops(loop: str) -> None:
    """What names them had effects that a loop may not have that is to be a kernel."""
    source = f"""func.func @f(%x: memref<?xi32>, %a: i32) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  {loop}
  return
}}"""
    x = np.arange(300, dtype=np.int32)
    with running_on("sm_90", source) as library:
        library.f(x, np.int32(5))
    np.testing.assert_array_equal(x, np.arange(5, 305))


def test_inline_ptx_that_changes_values_on_other_targets() -> None:
    """Each text is told once."""
    source = _CHANGES.format(changes='nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%a : i32)\n%r = arith.addi %a, %b : i32')
    with pytest.raises(CompileError, match=r"'nvvm\.inline_ptx' is an operation of NVIDIA GPUs") as caught:
        emit(source, "isa", ["rocdl:gfx942"])
    assert len(caught.value.diagnostics) == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        (
            'nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%one : i32)',
            r"12:5: error: 'nvvm.inline_ptx' changes a constant \(rw\), and all that",
        ),
        (
            "%less = arith.cmpi slt, %a, %b : i32\nscf.if %less {\n"
            'nvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%a : i32)\n}',
            r"14:1: error: 'nvvm.inline_ptx' changes a value \(rw\) that is used where it may not have run: let it",
        ),
        (
            'scf.for %s = %at to %i step %i {\nnvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%b : i32)\n}',
            r"13:1: error: 'nvvm.inline_ptx' changes a value \(rw\) from outside of its loop, which each step would",
        ),
        (
            'cf.br ^loop\n^loop:\nnvvm.inline_ptx "add.s32 $0, $0, 1;" rw(%b : i32)\n'
            "%on = arith.cmpi slt, %a, %one : i32\ncf.cond_br %on, ^loop, ^end\n^end:",
            r"14:1: error: 'nvvm.inline_ptx' changes a value \(rw\) from outside of its loop",
        ),
        (
            '%byte = arith.trunci %a : i32 to i8\nnvvm.inline_ptx "st.u8 [$0], $0;" ro(%byte : i8)',
            r"13:1: error: 'nvvm.inline_ptx' has a value of 'i8', and PTX has no register for it: give it one",
        ),
    ],
)
def test_what_inline_ptx_cannot_change(changes: str, error: str) -> None:
    """Where a text may not have run, or runs again, its operands stayed what they were; MLIR had no place for bytes."""
    with pytest.raises(CompileError, match=error):
        emit(_CHANGES.format(changes=changes + "\n%r = arith.addi %a, %one : i32"), "isa", ["nvvm:sm_90"])
