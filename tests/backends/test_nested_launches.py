"""Blocks on the CPU that call back into a program which launches kernels: the outer block is as it was afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from compiling import on_host

from offload.errors import DeviceError
from offload.runtime import Library

SOURCE = """
gpu.module @m {{
  gpu.func @outer(%f: !llvm.ptr, %x: memref<?xi32>, %limit: i32)
      workgroup(%w: memref<8192xi32, #gpu.address_space<workgroup>>) kernel {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c63 = arith.constant 63 : index
    %v = arith.index_cast %t : index to i32
    memref.store %v, %w[%t] : memref<8192xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {{
      llvm.call %f() : !llvm.ptr, () -> ()
    }}
    {barrier}
    %other = arith.subi %c63, %t : index
    %r = memref.load %w[%other] : memref<8192xi32, #gpu.address_space<workgroup>>
    %ok = arith.cmpi slt, %r, %limit : i32
    cf.assert %ok, "too large"
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }}
  gpu.func @inner(%x: memref<?xi32>) workgroup(%w: memref<16384xi32, #gpu.address_space<workgroup>>) kernel {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16384 = arith.constant 16384 : index
    %nine = arith.constant 9 : i32
    scf.for %i = %c0 to %c16384 step %c1 {{
      memref.store %nine, %w[%i] : memref<16384xi32, #gpu.address_space<workgroup>>
    }}
    {barrier}
    %r = memref.load %w[%t] : memref<16384xi32, #gpu.address_space<workgroup>>
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }}
}}
"""
EVERYBODY = "gpu.barrier"
"""Threads are loops between barriers."""
SOMEBODY = """%odd = arith.constant 1000 : i32
    %waits = arith.cmpi ne, %v, %odd : i32
    scf.if %waits {
      gpu.barrier
    }"""
"""Nobody sees that all threads come there: they are coroutines."""


def called_back(library: Library, function: Callable[[], None], limit: int) -> np.ndarray:
    pointer = ctypes.CFUNCTYPE(None)(function)
    out = np.zeros(64, np.int32)
    library.kernels.outer[1, 64](ctypes.cast(pointer, ctypes.c_void_p).value, out, limit)
    return out


@pytest.mark.parametrize("barrier", [EVERYBODY, SOMEBODY], ids=["loops", "coroutines"])
def test_a_launch_within_a_block(barrier: str) -> None:
    source = SOURCE.format(barrier=barrier)
    if barrier is SOMEBODY:
        head, tail = source.split("gpu.func @inner")
        source = head + "gpu.func @inner" + tail.replace(SOMEBODY, EVERYBODY)
    library, inner = on_host(source), np.zeros(64, np.int32)

    def launch() -> None:
        library.kernels.inner[1, 64](inner)

    for _ in range(3):
        np.testing.assert_array_equal(called_back(library, launch, 64), np.arange(64)[::-1])
        np.testing.assert_array_equal(inner, np.full(64, 9))
    with pytest.raises(DeviceError, match="too large"):
        called_back(library, launch, 10)
    np.testing.assert_array_equal(called_back(library, launch, 64), np.arange(64)[::-1])
