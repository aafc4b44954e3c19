// targets: nvvm:sm_90a
// Tiles in the memory of a block, at the beginning of it and inside; what else is there keeps its own alignment.
#shared = #gpu.address_space<workgroup>
!barrier = !nvgpu.mbarrier.group<memorySpace = #shared>
!bytes = memref<?xi8, #shared>
!tile = memref<64x32xf16, #shared>
!plain = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = none, l2promo = none, oob = zero, interleave = none>
!swizzled = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = swizzle_64b, l2promo = none, oob = zero,
                                        interleave = none>
!part = !gpu.mma_matrix<16x16xf16, "COp">
gpu.module @tiles {
  memref.global "private" @kept : memref<128x32xf16, #shared>
  memref.global "private" @counts : memref<7xi8, #shared>
  gpu.func @given(%map: !plain, %out: memref<64x32xf16>, %lead: i1) workgroup(%few: memref<3xi8, #shared>, %s: !tile)
      kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i8
    %b = nvgpu.mbarrier.create -> !barrier
    memref.store %one, %few[%c0] : memref<3xi8, #shared>
    nvgpu.tma.async.load %map[%c0, %c0], %b[%c0] to %s, predicate = %lead : !plain, !barrier -> !tile
    gpu.return
  }
  gpu.func @global(%map: !swizzled, %lead: i1) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i8
    %all = memref.get_global @kept : memref<128x32xf16, #shared>
    %counts = memref.get_global @counts : memref<7xi8, #shared>
    memref.store %one, %counts[%c0] : memref<7xi8, #shared>
    %half = memref.subview %all[64, 0] [64, 32] [1, 1]
        : memref<128x32xf16, #shared> to memref<64x32xf16, strided<[32, 1], offset: 2048>, #shared>
    %s = memref.reinterpret_cast %half to offset: [0], sizes: [64, 32], strides: [32, 1]
        : memref<64x32xf16, strided<[32, 1], offset: 2048>, #shared> to !tile
    nvgpu.tma.async.store %s to %map[%c0, %c0], predicate = %lead : !tile -> !swizzled
    gpu.return
  }
  gpu.func @copied(%x: memref<64x32xf16>, %out: memref<64x32xf16>, %i: index)
      workgroup(%s: memref<64x32xf16, #shared>, %m: memref<16x16xf16, #shared>) kernel {
    %c0 = arith.constant 0 : index
    %copy = nvgpu.device_async_copy %x[%i, %c0], %s[%i, %c0], 8 : memref<64x32xf16> to memref<64x32xf16, #shared>
    %part = gpu.subgroup_mma_load_matrix %m[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16, #shared> -> !part
    gpu.subgroup_mma_store_matrix %part, %out[%c0, %c0] {leadDimension = 32 : index} : !part, memref<64x32xf16>
    gpu.return
  }
}
gpu.module @dynamic {
  memref.global "private" @stages : memref<0xf16, #shared> {alignment = 32 : i64}
  gpu.func @ring(%map: !swizzled, %lead: i1) kernel {
    %c0 = arith.constant 0 : index
    %c4096 = arith.constant 4096 : index
    %half = arith.constant 1.0 : f16
    %b = nvgpu.mbarrier.create -> !barrier
    %stages = memref.get_global @stages : memref<0xf16, #shared>
    %first = memref.reinterpret_cast %stages to offset: [0], sizes: [64, 32], strides: [32, 1]
        : memref<0xf16, #shared> to !tile
    memref.store %half, %first[%c0, %c0] : !tile
    %all = gpu.dynamic_shared_memory : !bytes
    %s = memref.view %all[%c4096][] : !bytes to !tile
    nvgpu.tma.async.load %map[%c0, %c0], %b[%c0] to %s, predicate = %lead : !swizzled, !barrier -> !tile
    gpu.return
  }
}
gpu.module @carried {
  gpu.func @turns(%map: !plain, %lead: i1, %n: index) workgroup(%even: !tile, %odd: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = nvgpu.mbarrier.create -> !barrier
    %last:2 = scf.for %i = %c0 to %n step %c1 iter_args(%this = %even, %next = %odd) -> (!tile, !tile) {
      nvgpu.tma.async.load %map[%c0, %i], %b[%c0] to %this, predicate = %lead : !plain, !barrier -> !tile
      scf.yield %next, %this : !tile, !tile
    }
    gpu.return
  }
}
