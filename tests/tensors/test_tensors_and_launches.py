"""Functions that have tensors and, beside them, launches, tokens, a gpu.launch with memory of its blocks, and what only
one vendor's GPUs have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import on_host
from emulator.running import running_on

KERNEL = """
gpu.module @work {
  gpu.func @add(%x: memref<?xi32>, %v: i32) kernel {
    %t = gpu.thread_id x
    %a = memref.load %x[%t] : memref<?xi32>
    %r = arith.addi %a, %v : i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
}
"""
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i32
  %ten = arith.constant 10 : i32
"""


def grown(result: str, of: str) -> str:
    """One more of each."""
    return f"""
  %e_{result} = tensor.empty() : tensor<8xi32>
  %{result} = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%{of} : tensor<8xi32>) outs(%e_{result} : tensor<8xi32>) {{
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %one : i32
    linalg.yield %s : i32
  }} -> tensor<8xi32>
"""


def launch(array: str, before: str = "") -> str:
    head = f"gpu.launch_func {before} @work::@add blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1)"
    return f"{head} args(%{array} : memref<?xi32>, %ten : i32)\n"


BLOCKS = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1)
      workgroup(%w : memref<8xi32, #gpu.address_space<workgroup>>, %v : memref<8xi32, #gpu.address_space<workgroup>>)
      private(%own : memref<1xi32, #gpu.address_space<private>>) {
    %l = memref.load %x[%tx] : memref<?xi32>
    memref.store %l, %w[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %o = arith.subi %c7, %tx : index
    %m = memref.load %w[%o] : memref<8xi32, #gpu.address_space<workgroup>>
    memref.store %m, %own[%c0] : memref<1xi32, #gpu.address_space<private>>
    %n = memref.load %own[%c0] : memref<1xi32, #gpu.address_space<private>>
    memref.store %n, %v[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
    %y = memref.load %v[%tx] : memref<8xi32, #gpu.address_space<workgroup>>
    %sum = gpu.all_reduce add %one uniform {} : (i32) -> i32
    %most = gpu.all_reduce %one uniform {
    ^bb0(%p: i32, %q: i32):
      %larger = arith.maxsi %p, %q : i32
      gpu.yield %larger : i32
    } : (i32) -> i32
    %more = arith.addi %sum, %most : i32
    %z = arith.addi %y, %more : i32
    memref.store %z, %x[%tx] : memref<?xi32>
    gpu.terminator
  }
"""
OF_BLOCK = "memref<8xi32, #gpu.address_space<workgroup>>"
SWAPPED = f"""
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1)
      workgroup(%w : {OF_BLOCK}, %v : {OF_BLOCK}) {{
    %l = memref.load %x[%tx] : memref<?xi32>
    memref.store %l, %w[%tx] : {OF_BLOCK}
    gpu.barrier
    %ends:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%from = %w, %to = %v) -> ({OF_BLOCK}, {OF_BLOCK}) {{
      %next = arith.addi %tx, %c1 : index
      %at = arith.remui %next, %c8 : index
      %n = memref.load %from[%at] : {OF_BLOCK}
      memref.store %n, %to[%tx] : {OF_BLOCK}
      gpu.barrier
      scf.yield %to, %from : {OF_BLOCK}, {OF_BLOCK}
    }}
    %z = memref.load %ends#0[%tx] : {OF_BLOCK}
    memref.store %z, %x[%tx] : memref<?xi32>
    gpu.terminator
  }}
"""
SEEN = """
  %m_r = bufferization.to_buffer %r : tensor<8xi32> to memref<8xi32>
  %b = memref.cast %m_r : memref<8xi32> to memref<?xi32>
"""
A = np.arange(8, dtype=np.int32)

PROGRAMS: dict[str, tuple[str, Any, Any]] = {
    "a launch": (grown("r", "a") + launch("x"), A + 1, A + 10),
    "one that writes to a tensor's memory": (
        grown("r", "a") + SEEN + launch("b")
        + "%result = bufferization.to_tensor %m_r restrict : memref<8xi32> to tensor<8xi32>\n",
        A + 11,
        A,
    ),
    "tokens": (
        "%t0 = gpu.wait async\n%t1 = " + launch("x", "async [%t0]") + grown("r", "a") + "gpu.wait [%t1]\n",
        A + 1,
        A + 10,
    ),
    "work on a tensor's memory that nobody waits for": (
        grown("r", "a") + SEEN + "%t0 = gpu.wait async\n%t1 = " + launch("b", "async [%t0]")
        + "%t2 = gpu.memcpy async [%t1] %x, %b : memref<?xi32>, memref<?xi32>\n" + grown("result", "a"),
        A + 1,
        A + 11,
    ),
    "a token through a loop": (
        """
  %t0 = gpu.wait async
  %r, %end = scf.for %i = %c0 to %c3 step %c1 iter_args(%u = %a, %t = %t0)
      -> (tensor<8xi32>, !gpu.async.token) {
"""
        + grown("g", "u") + "%t1 = " + launch("x", "async [%t]")
        + "scf.yield %g, %t1 : tensor<8xi32>, !gpu.async.token\n}\ngpu.wait [%end]\n",
        A + 3,
        A + 30,
    ),
    "in a branch": (
        """
  %first = memref.load %x[%c0] : memref<?xi32>
  %is = arith.cmpi slt, %first, %one : i32
  %r = scf.if %is -> tensor<8xi32> {
"""
        + grown("g", "a") + launch("x") + BLOCKS
        + "scf.yield %g : tensor<8xi32>\n} else {\nscf.yield %a : tensor<8xi32>\n}\n",
        A + 1,
        A[::-1] + 19,
    ),
    "what LLVM has": (grown("r", "a") + "llvm.fence seq_cst\n", A + 1, A),
    "registered memory": (
        grown("r", "a") + "%all = memref.cast %x : memref<?xi32> to memref<*xi32>\n"
        + "gpu.host_register %all : memref<*xi32>\n" + launch("x") + "gpu.host_unregister %all : memref<*xi32>\n",
        A + 1,
        A + 10,
    ),
    "memory of blocks and threads": (grown("r", "a") + BLOCKS, A + 1, A[::-1] + 9),
    "memory of blocks that a loop swaps": (grown("r", "a") + SWAPPED, A + 1, np.roll(A, -3)),
    "memory that the program frees": (
        """
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%u = %a) -> (tensor<8xi32>) {
    %m = gpu.alloc (%c8) : memref<?xi32>
    gpu.memcpy %m, %x : memref<?xi32>, memref<?xi32>
"""
        + launch("m") + "gpu.memcpy %x, %m : memref<?xi32>, memref<?xi32>\ngpu.dealloc %m : memref<?xi32>\n"
        + "%h = memref.alloc() : memref<8xi32>\n%all = memref.cast %h : memref<8xi32> to memref<?xi32>\n"
        + grown("g", "u") + "memref.dealloc %all : memref<?xi32>\nscf.yield %g : tensor<8xi32>\n}\n",
        A + 3,
        A + 30,
    ),
    "memory that the program frees behind work": (
        "%t0 = gpu.wait async\n%m, %t1 = gpu.alloc async [%t0] (%c8) : memref<?xi32>\n"
        + "%t2 = gpu.memcpy async [%t1] %m, %x : memref<?xi32>, memref<?xi32>\n%t3 = " + launch("m", "async [%t2]")
        + "%t4 = gpu.memcpy async [%t3] %x, %m : memref<?xi32>, memref<?xi32>\n"
        + "%t5 = gpu.dealloc async [%t4] %m : memref<?xi32>\n" + grown("r", "a") + "gpu.wait [%t5]\n",
        A + 1,
        A + 10,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_beside_tensors(name: str) -> None:
    """MLIR's deallocation refused launches and waits, and broke a gpu.launch that has memory of its own."""
    body, wanted, left = PROGRAMS[name]
    result = "%result" if "%result =" in body else "%r"
    library = on_host(
        f"{KERNEL}func.func @f(%a: tensor<8xi32>, %x: memref<?xi32>) -> tensor<8xi32> {{{HEAD}{body}"
        f"return {result} : tensor<8xi32>\n}}"
    )
    api = library._native.api
    for schedule in (0, 1, 2, 3, 4):
        api.mgpuHostSchedule(schedule)
        x = A.copy()
        returned = library.f(A.copy(), x).numpy()
        assert returned.tolist() == wanted.tolist()
        assert x.tolist() == left.tolist()
    api.mgpuHostSchedule(0)


BARRIERS = [
    ("sm_80", "nvvm.barrier0"),
    ("gfx90a", "amdgpu.lds_barrier"),
    (
        "sm_80",
        """
    %copy = nvgpu.device_async_copy %x[%tx], %w[%tx], 1
        : memref<?xi32> to memref<8xi32, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
""",
    ),
]


@pytest.mark.parametrize(("chip", "barrier"), BARRIERS)
def test_operations_of_one_vendor(chip: str, barrier: str) -> None:
    """Whose effects MLIR's deallocation does not know either."""
    source = (
        f"func.func @f(%a: tensor<8xi32>, %x: memref<?xi32>) -> tensor<8xi32> {{{HEAD}{grown('r', 'a')}"
        f"{BLOCKS.replace('gpu.barrier', barrier, 1)}return %r : tensor<8xi32>\n}}"
    )
    x = A.copy()
    with running_on(chip, source) as library:
        assert library.f(A.copy(), x).numpy().tolist() == (A + 1).tolist()
    assert x.tolist() == (A[::-1] + 9).tolist()
