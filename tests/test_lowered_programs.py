"""Programs that MLIR's own passes have lowered: host code and kernels in the LLVM dialect, with plain pointers or
descriptors. On the CPU, and under offload run, which takes what mlir-runner takes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import on_host

import offload
from offload.errors import CompileError

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
