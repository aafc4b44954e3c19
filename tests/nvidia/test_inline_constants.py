"""Constants that operations which become inline PTX are given: as operands, and as conditions."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit
from emulator.running import running_on
from operations import kernel

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
    %pair = arith.constant dense<[0.5, 0.25]> : vector<2xf16>
    %a = nvvm.inline_ptx "add.f32 $0, $1, $1;" ro(%single : f32) -> f32
    %b = nvvm.inline_ptx "add.f64 $0, $1, $1;" ro(%double : f64) -> f64
    %c = nvvm.inline_ptx "add.f16x2 $0, $1, $1;" ro(%pair : vector<2xf16>) -> vector<2xf16>
    %d = nvvm.inline_ptx "selp.b32 $0, $2, 7, $1;" ro(%never, %n : i1, i32) -> i32
    nvvm.inline_ptx "st.global.f32 [$0], $1;" ro(%number, %single : i64, f32), predicate = %true
    nvvm.inline_ptx "st.global.f32 [$0+4], $1;" ro(%number, %single : i64, f32), predicate = %never
    %b32 = arith.truncf %b : f64 to f32
    %c16 = vector.extract %c[1] : f16 from vector<2xf16>
    %c32 = arith.extf %c16 : f16 to f32
    %d32 = arith.sitofp %d : i32 to f32
    %all = vector.from_elements %a, %b32, %c32, %d32 : vector<4xf32>
    %c2 = arith.constant 2 : index
    vector.store %all, %x[%c2] : memref<?xf32>, vector<4xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("options", ["", ",O=0"])
def test_constants_that_inline_ptx_is_given(options: str) -> None:
    """Only integers have a form in the text of an instruction, where MLIR 22 writes what is constant."""
    (cubin,) = emit(_CONSTANTS, "object", [f"nvvm:sm_90{options}"])
    assert cubin.data.startswith(b"\x7fELF")
    x = np.full(6, -1, np.float32)
    with running_on(f"sm_90{options}", _CONSTANTS) as library:
        library.kernels.k[1, 1](x, np.int32(3))
    np.testing.assert_array_equal(x, np.array([1.5, -1, 3, 5, 0.5, 7], np.float32))


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
