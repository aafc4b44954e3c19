"""What came with sm_90: tiles through TMA, barriers in memory, clusters, products of warpgroups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from device.checks import CUDA, Check, Program
from offload.runtime import Library

SECONDS = 20
"""A barrier that nobody completes is waited for without end."""

# Every block copies the 64 x 64 tile of its place through shared memory: in through TMA, out with plain stores.
TMA = """
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!tile = memref<64x64xf16, 3>
!map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = none, l2promo = l2promo_128b, oob = zero,
                                   interleave = none>
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @tile(%map: !map, %out: memref<256x192xf16>) workgroup(%s: !tile) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %bytes = arith.constant 8192 : index
      %ticks = arith.constant 10000000 : index
      %phase = arith.constant false
      %t = gpu.thread_id x
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %col = arith.muli %bx, %c64 : index
      %row = arith.muli %by, %c64 : index
      %lead = arith.cmpi eq, %t, %c0 : index
      %b = nvgpu.mbarrier.create -> !barrier
      nvgpu.mbarrier.init %b[%c0], %c1, predicate = %lead : !barrier
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      gpu.barrier
      nvgpu.mbarrier.arrive.expect_tx %b[%c0], %bytes, predicate = %lead : !barrier
      nvgpu.tma.async.load %map[%col, %row], %b[%c0] to %s, predicate = %lead : !map, !barrier -> !tile
      nvgpu.mbarrier.try_wait.parity %b[%c0], %phase, %ticks : !barrier
      scf.for %j = %c0 to %c64 step %c1 {
        %v = memref.load %s[%t, %j] : !tile
        %r = arith.addi %row, %t : index
        %c = arith.addi %col, %j : index
        memref.store %v, %out[%r, %c] : memref<256x192xf16>
      }
      gpu.return
    }
  }
  func.func @copy(%x: memref<256x192xf16>, %out: memref<256x192xf16>) {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %any = memref.cast %x : memref<256x192xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch_func @m::@tile blocks in (%c3, %c4, %c1) threads in (%c64, %c1, %c1)
        args(%map : !map, %out : memref<256x192xf16>)
    return
  }
}
"""

# One warpgroup: two tiles through TMA with the swizzle that the instruction wants, one product. They are dynamic
# memory, which begins behind the barrier.
WARPGROUP = """
#shared = #gpu.address_space<workgroup>
!barrier = !nvgpu.mbarrier.group<memorySpace = #shared>
!bytes = memref<?xi8, #shared>
!tile = memref<64x64x{kind}, #shared>
!map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero,
                                   interleave = none>
!operand = !nvgpu.warpgroup.descriptor<tensor = !tile>
!sum = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @product(%ma: !map, %mb: !map, %out: memref<64x64xf32>) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8192 = arith.constant 8192 : index
      %all = gpu.dynamic_shared_memory : !bytes
      %sa = memref.view %all[%c0][] : !bytes to !tile
      %sb = memref.view %all[%c8192][] : !bytes to !tile
      %bytes = arith.constant 16384 : index
      %ticks = arith.constant 10000000 : index
      %phase = arith.constant false
      %t = gpu.thread_id x
      %lead = arith.cmpi eq, %t, %c0 : index
      %b = nvgpu.mbarrier.create -> !barrier
      nvgpu.mbarrier.init %b[%c0], %c1, predicate = %lead : !barrier
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
      gpu.barrier
      nvgpu.mbarrier.arrive.expect_tx %b[%c0], %bytes, predicate = %lead : !barrier
      nvgpu.tma.async.load %ma[%c0, %c0], %b[%c0] to %sa, predicate = %lead : !map, !barrier -> !tile
      nvgpu.tma.async.load %mb[%c0, %c0], %b[%c0] to %sb, predicate = %lead : !map, !barrier -> !tile
      nvgpu.mbarrier.try_wait.parity %b[%c0], %phase, %ticks : !barrier
      %a = nvgpu.warpgroup.generate.descriptor %sa, %ma : !tile, !map -> !operand
      %w = nvgpu.warpgroup.generate.descriptor %sb, %mb : !tile, !map -> !operand
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sum
      %sum = nvgpu.warpgroup.mma %a, %w, %zero {{transposeB, waitGroup = 0 : i64}} : !operand, !operand, !sum -> !sum
      nvgpu.warpgroup.mma.store %sum, %out : !sum to memref<64x64xf32>
      gpu.return
    }}
  }}
  func.func @product(%a: memref<64x64x{kind}>, %b: memref<64x64x{kind}>, %out: memref<64x64xf32>) {{
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %size = arith.constant 16384 : i32
    %any_a = memref.cast %a : memref<64x64x{kind}> to memref<*x{kind}>
    %any_b = memref.cast %b : memref<64x64x{kind}> to memref<*x{kind}>
    %ma = nvgpu.tma.create.descriptor %any_a box[%c64, %c64] : memref<*x{kind}> -> !map
    %mb = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*x{kind}> -> !map
    gpu.launch_func @m::@product blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        dynamic_shared_memory_size %size args(%ma : !map, %mb : !map, %out : memref<64x64xf32>)
    return
  }}
}}
"""

# Blocks tell their place in their cluster; they meet before the end.
CLUSTER = """
gpu.module @m {
  gpu.func @k(%out: memref<?x3xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %b = gpu.block_id x
    %rank = gpu.cluster_block_id x
    %size = gpu.cluster_dim_blocks x
    %cluster = gpu.cluster_id x
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %r = arith.index_cast %rank : index to i32
    %s = arith.index_cast %size : index to i32
    %c = arith.index_cast %cluster : index to i32
    memref.store %r, %out[%b, %c0] : memref<?x3xi32>
    memref.store %s, %out[%b, %c1] : memref<?x3xi32>
    memref.store %c, %out[%b, %c2] : memref<?x3xi32>
    gpu.return
  }
}
"""


def tma(library: Library) -> None:
    x = np.arange(256 * 192).reshape(256, 192).astype(np.float16)
    there, out = library.device.array(x), library.device.zeros(x.shape, np.float16)
    library.copy(there, out)
    np.testing.assert_array_equal(out.numpy(), x)


def warpgroup(library: Library) -> None:
    import ml_dtypes

    random = np.random.default_rng(7)
    dtype = library.signatures["product"].args[0].dtype
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    a, b = (random.integers(-4, 5, (64, 64)).astype(kind) for _ in range(2))
    out = library.device.zeros((64, 64), np.float32)
    library.product(library.device.array(a), library.device.array(b), out)
    np.testing.assert_array_equal(out.numpy(), a.astype(np.float32) @ b.astype(np.float32))


def clusters(library: Library) -> None:
    for size in (1, 2, 4):
        out = library.device.array(np.full((8, 3), -1, np.int32))
        library.kernels.k[8, 32, None, 0, size](out)
        block = np.arange(8)
        np.testing.assert_array_equal(out.numpy(), np.stack([block % size, np.full(8, size), block // size], axis=1))


def checks() -> Iterator[Check]:
    yield Check("hopper", "a tile through TMA", [Program(TMA, ("nvvm:sm_90",))], tma, [CUDA], seconds=SECONDS)
    for kind in ("f16", "bf16"):
        source = Program(WARPGROUP.format(kind=kind), ("nvvm:sm_90a",))
        yield Check("hopper", f"a product of a warpgroup, {kind}", [source], warpgroup, [CUDA], seconds=SECONDS)
    yield Check("hopper", "clusters", [Program(CLUSTER, ("nvvm:sm_90",))], clusters, [CUDA], seconds=SECONDS)
