// targets: nvvm:sm_90a
// A tile through TMA: the descriptor is made by host code and handed to the kernel, which waits at a barrier in memory.
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!tile = memref<64x64xf16, 3>
!map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero,
                                   interleave = none>
!operand = !nvgpu.warpgroup.descriptor<tensor = !tile>
!sum = !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
module attributes {gpu.container_module} {
  gpu.module @tma {
    gpu.func @barriers(%n: index, %out: memref<?xi1>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = nvgpu.mbarrier.create -> !barrier
      nvgpu.mbarrier.init %b[%c1], %n : !barrier
      %first = nvgpu.mbarrier.arrive %b[%c1] : !barrier -> !token
      %second = nvgpu.mbarrier.arrive.nocomplete %b[%c1], %n : !barrier -> !token
      %done = nvgpu.mbarrier.test.wait %b[%c1], %first : !barrier, !token
      memref.store %done, %out[%c0] : memref<?xi1>
      gpu.return
    }
    gpu.func @tile(%map: !map, %lead: i1) workgroup(%s: !tile) kernel {
      %c0 = arith.constant 0 : index
      %bytes = arith.constant 8192 : index
      %ticks = arith.constant 1000 : index
      %phase = arith.constant false
      %b = nvgpu.mbarrier.create -> !barrier
      nvgpu.tma.prefetch.descriptor %map : !map
      nvgpu.tma.fence.descriptor %map : !map
      nvgpu.mbarrier.arrive.expect_tx %b[%c0], %bytes, predicate = %lead : !barrier
      nvgpu.tma.async.load %map[%c0, %c0], %b[%c0] to %s, predicate = %lead : !map, !barrier -> !tile
      nvgpu.mbarrier.try_wait.parity %b[%c0], %phase, %ticks : !barrier
      nvgpu.tma.async.store %s to %map[%c0, %c0], predicate = %lead : !tile -> !map
      gpu.return
    }
    gpu.func @products(%map: !map, %out: memref<64x64xf32>) workgroup(%s: !tile) kernel {
      %a = nvgpu.warpgroup.generate.descriptor %s, %map : !tile, !map -> !operand
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sum
      %sum = nvgpu.warpgroup.mma %a, %a, %zero {transposeB} : !operand, !operand, !sum -> !sum
      nvgpu.warpgroup.mma.store %sum, %out : !sum to memref<64x64xf32>
      gpu.return
    }
  }
  func.func @copy(%x: memref<256x256xf16>, %lead: i1) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %any = memref.cast %x : memref<256x256xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> !map
    gpu.launch_func @tma::@tile blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%map : !map, %lead : i1)
    return
  }
}
