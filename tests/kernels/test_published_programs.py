"""Programs of the shapes that the gpu dialect's page, its mailing list and its patches discuss: build and run."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host, tool

SHAPES = {
    # Frees without a wait for one of them; the second allocation depends on the same token as the first.
    "two buffers on one token": """
      %t = gpu.wait async
      %p, %tp = gpu.alloc async [%t] (%n) : memref<?xf32>
      %q, %tq = gpu.alloc async [%t] (%n) : memref<?xf32>
      %fp = gpu.dealloc async [%tp] %p : memref<?xf32>
      %fq = gpu.dealloc async [%tq] %q : memref<?xf32>
      gpu.wait [%fp]""",
    # A copy that waits for both buffers.
    "a copy with two dependencies": """
      %t = gpu.wait async
      %p, %tp = gpu.alloc async [%t] (%n) : memref<?xf32>
      %q, %tq = gpu.alloc async [%t] (%n) : memref<?xf32>
      %i = gpu.memcpy async [%tq] %q, %x : memref<?xf32>, memref<?xf32>
      %c = gpu.memcpy async [%tp, %i] %p, %q : memref<?xf32>, memref<?xf32>
      %o = gpu.memcpy async [%c] %y, %p : memref<?xf32>, memref<?xf32>
      %fp = gpu.dealloc async [%o] %p : memref<?xf32>
      %fq = gpu.dealloc async [%c] %q : memref<?xf32>
      gpu.wait [%fp, %fq]""",
    # Two streams joined by a wait, one of the frees never waited for.
    "two streams and a join": """
      %s = gpu.wait async
      %p, %tp = gpu.alloc async [%s] (%n) : memref<?xf32>
      %r = gpu.wait async
      %q, %tq = gpu.alloc async [%r] (%n) : memref<?xf32>
      %i = gpu.memcpy async [%tq] %q, %x : memref<?xf32>, memref<?xf32>
      %j = gpu.wait async [%tp, %i]
      %c = gpu.memcpy async [%j] %p, %q : memref<?xf32>, memref<?xf32>
      %o = gpu.memcpy async [%c] %y, %p : memref<?xf32>, memref<?xf32>
      %fp = gpu.dealloc async [%o] %p : memref<?xf32>
      %fq = gpu.dealloc async [%c] %q : memref<?xf32>
      gpu.wait [%fp, %fq]""",
    # What gpu-async-region makes of synchronous code: each operation depends on the last, the free on two.
    "output of gpu-async-region": """
      %t = gpu.wait async
      %p, %tp = gpu.alloc async [%t] (%n) : memref<?xf32>
      %c = gpu.memcpy async [%tp] %p, %x : memref<?xf32>, memref<?xf32>
      %o = gpu.memcpy async [%c] %y, %p : memref<?xf32>, memref<?xf32>
      %f = gpu.dealloc async [%o, %tp] %p : memref<?xf32>
      gpu.wait [%f]""",
    # Host memory on the stack as a source.
    "from the stack": """
      %a = memref.alloca(%n) : memref<?xf32>
      memref.copy %x, %a : memref<?xf32> to memref<?xf32>
      %t = gpu.wait async
      %p, %tp = gpu.alloc async [%t] (%n) : memref<?xf32>
      %c = gpu.memcpy async [%tp] %p, %a : memref<?xf32>, memref<?xf32>
      %o = gpu.memcpy async [%c] %y, %p : memref<?xf32>, memref<?xf32>
      %f = gpu.dealloc async [%o] %p : memref<?xf32>
      gpu.wait [%f]""",
}  # fmt: skip


def program(body: str) -> str:
    return f"""
    func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      {body}
      return
    }}
    """


@pytest.mark.parametrize("name", SHAPES)
def test_asynchronous_shapes(name: str) -> None:
    for n in (1, 100):
        x, y = np.arange(n, dtype=np.float32) + 1, np.zeros(n, np.float32)
        on_host(program(SHAPES[name])).f(x, y)
        np.testing.assert_array_equal(y, x if "%y" in SHAPES[name] else 0 * x)


LAUNCHES = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @count(%x: memref<4xi32>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<4xi32>
      %one = arith.constant 1 : i32
      %r = arith.addi %v, %one : i32
      memref.store %r, %x[%t] : memref<4xi32>
      gpu.return
    }
  }
  func.func @f(%x: memref<4xi32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %p = gpu.wait async
    %q = gpu.wait async
    %d, %r = gpu.alloc async [%q] () : memref<4xi32>
    %s = gpu.memcpy async [%r] %d, %x : memref<4xi32>, memref<4xi32>
    %t = gpu.launch_func async [%p, %s] @kernels::@count blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
        args(%d : memref<4xi32>)
    %u = gpu.memcpy async [%t] %x, %d : memref<4xi32>, memref<4xi32>
    %v = gpu.dealloc async [%u] %d : memref<4xi32>
    gpu.wait [%v]
    return
  }
}
"""


def test_a_launch_with_two_dependencies() -> None:
    x = np.arange(4, dtype=np.int32)
    on_host(LAUNCHES).f(x)
    np.testing.assert_array_equal(x, np.arange(4) + 1)
    assert len(emit(LAUNCHES, "object", ALL_TARGETS)) == 3


def test_outlined_and_mapped_by_mlir_opt_first() -> None:
    """A program that MLIR's own passes took part of the way (mapping, launches, outlining) builds as it is."""
    source = """
    func.func @f(%x: memref<32x8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c8) step (%c1, %c1) {
        %v = memref.load %x[%i, %j] : memref<32x8xf32>
        %r = arith.addf %v, %v : f32
        memref.store %r, %x[%i, %j] : memref<32x8xf32>
      }
      return
    }
    """
    passes = ["func.func(gpu-map-parallel-loops)", "convert-parallel-loops-to-gpu", "gpu-kernel-outlining"]
    for count in range(1, 4):
        text = tool("mlir-opt", f"--pass-pipeline=builtin.module({','.join(passes[:count])})", "-", given=source)
        x = np.arange(256, dtype=np.float32).reshape(32, 8)
        on_host(text).f(x)
        np.testing.assert_array_equal(x, 2 * np.arange(256).reshape(32, 8))
        assert len(emit(text, "object", ALL_TARGETS)) == 3


def test_operations_around_the_async_region_pass() -> None:
    """Synchronous code, as it is and through gpu-async-region."""
    source = program("""
      %p = gpu.alloc (%n) : memref<?xf32>
      gpu.memcpy %p, %x : memref<?xf32>, memref<?xf32>
      gpu.memcpy %y, %p : memref<?xf32>, memref<?xf32>
      gpu.dealloc %p : memref<?xf32>""")
    text = tool("mlir-opt", "--pass-pipeline=builtin.module(func.func(gpu-async-region))", "-", given=source)
    assert "async" in text
    for one in (source, text):
        x, y = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
        on_host(one).f(x, y)
        np.testing.assert_array_equal(x, y)


FREES = """
gpu.module @kernels {
  gpu.func @sum(%x: memref<64xi32>, %y: memref<64xi32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xi32>
    %w = memref.load %y[%t] : memref<64xi32>
    %r = arith.addi %v, %w : i32
    memref.store %r, %y[%t] : memref<64xi32>
    gpu.return
  }
}
func.func @f(%x: memref<64xi32>, %y: memref<64xi32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = gpu.wait async
  %p, %b = gpu.alloc async [%a] () : memref<64xi32>
  %c = gpu.memcpy async [%b] %p, %x : memref<64xi32>, memref<64xi32>
  %d = gpu.wait async
  %q, %e = gpu.alloc async [%d] () : memref<64xi32>
  %f = gpu.memcpy async [%e] %q, %y : memref<64xi32>, memref<64xi32>
  gpu.wait [%c, %f]
  %g = gpu.launch_func async @kernels::@sum blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%p : memref<64xi32>, %q : memref<64xi32>)
  %h = gpu.memcpy async [%g] %y, %q : memref<64xi32>, memref<64xi32>
  %i = gpu.dealloc async [%h] %q : memref<64xi32>
  %j = gpu.wait async
  %k = gpu.dealloc async [%j] %p : memref<64xi32>
  gpu.wait [%i, %k]
  return
}
"""


WITHOUT_TOKEN = FREES.replace("%k = gpu.dealloc async [%j] %p", "gpu.dealloc %p").replace("[%i, %k]", "[%i]")


@pytest.mark.parametrize("source", [FREES, WITHOUT_TOKEN], ids=["on another stream", "without a token"])
def test_memory_is_freed_behind_the_kernel_that_uses_it(source: str) -> None:
    """sparse-gpu-codegen frees a kernel's operands on other streams: upstream's free waits for the device."""
    library = on_host(source)
    schedule = library._native.api.mgpuHostSchedule
    try:
        for seed in range(1, 30):
            schedule(seed)
            x, y = np.arange(64, dtype=np.int32), np.full(64, seed, np.int32)
            library.f(x, y)
            np.testing.assert_array_equal(y, x + seed)
    finally:
        schedule(0)


BEHIND_COPIES = """
gpu.module @kernels {
  gpu.func @twice(%x: memref<64xi32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xi32>
    %r = arith.addi %v, %v : i32
    memref.store %r, %x[%t] : memref<64xi32>
    gpu.return
  }
}
func.func @f(%x: memref<64xi32>, %y: memref<64xi32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %a = gpu.wait async
  %p, %b = gpu.alloc async [%a] () : memref<64xi32>
  %q, %c = gpu.alloc async [%a] () : memref<64xi32>
  %d = gpu.memcpy async [%a] %p, %x : memref<64xi32>, memref<64xi32>
  gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%p : memref<64xi32>)
  %e = gpu.memcpy async [%a] %q, %p : memref<64xi32>, memref<64xi32>
  gpu.memcpy %y, %q : memref<64xi32>, memref<64xi32>
  return
}
"""


def test_what_has_no_token_runs_behind_the_copies_to_its_operands() -> None:
    """tma_load and gemm of the tests for sm_90 launch while copies with a token are not waited for."""
    library = on_host(BEHIND_COPIES)
    schedule = library._native.api.mgpuHostSchedule
    try:
        for seed in range(1, 30):
            schedule(seed)
            x, y = np.arange(64, dtype=np.int32) + seed, np.zeros(64, np.int32)
            library.f(x, y)
            np.testing.assert_array_equal(y, 2 * x)
    finally:
        schedule(0)
