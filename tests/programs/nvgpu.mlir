// targets: nvvm:sm_90a
// Operations of NVIDIA's tensor cores, one kernel per group; golden/nvgpu.lowered.check says what becomes of them.
!shared = memref<64x64xf16, #gpu.address_space<workgroup>>
!a = !gpu.mma_matrix<16x16xf16, "AOp">
!b = !gpu.mma_matrix<16x16xf16, "BOp">
!c = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @nvgpu {
  gpu.func @wmma(%x: memref<16x16xf16>, %y: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %a = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !a
    %b = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index, transpose} : memref<16x16xf16> -> !b
    %c = gpu.subgroup_mma_constant_matrix %one : !c
    %d = gpu.subgroup_mma_compute %a, %b, %c {b_transpose} : !a, !b -> !c
    %v = gpu.subgroup_mma_extract_thread_local %d[%c0] : !c -> f32
    %w = gpu.subgroup_mma_insert_thread_local %v, %c[%c0] : f32, !c -> !c
    %e = gpu.subgroup_mma_elementwise addf %d, %w : (!c, !c) -> !c
    gpu.subgroup_mma_store_matrix %e, %y[%c0, %c0] {leadDimension = 16 : index} : !c, memref<16x16xf32>
    gpu.return
  }
  gpu.func @copies(%x: memref<64x64xf16>, %n: index) workgroup(%s: !shared) kernel {
    %c0 = arith.constant 0 : index
    %all = nvgpu.device_async_copy %x[%c0, %c0], %s[%c0, %c0], 8 : memref<64x64xf16> to !shared
    %some = nvgpu.device_async_copy %x[%c0, %c0], %s[%c0, %c0], 8, %n {bypassL1} : memref<64x64xf16> to !shared
    %group = nvgpu.device_async_create_group %all, %some
    nvgpu.device_async_wait %group {numGroups = 1 : i32}
    gpu.return
  }
  gpu.func @products(%x: memref<64xf16>, %y: memref<64xf32>, %i: memref<64xi8>) workgroup(%s: !shared) kernel {
    %c0 = arith.constant 0 : index
    %a = nvgpu.ldmatrix %s[%c0, %c0] {numTiles = 4 : i32, transpose = false} : !shared -> vector<4x2xf16>
    %b = nvgpu.ldmatrix %s[%c0, %c0] {numTiles = 2 : i32, transpose = true} : !shared -> vector<2x2xf16>
    %c = arith.constant dense<0.0> : vector<2x2xf32>
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]}
      : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %bs = nvgpu.ldmatrix %s[%c0, %c0] {numTiles = 4 : i32, transpose = true} : !shared -> vector<4x2xf16>
    %which = arith.constant dense<0> : vector<2xi16>
    %e = nvgpu.mma.sp.sync(%a, %bs, %d) metadata(%which) {mmaShape = [16, 8, 32]}
      : (vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %e0 = vector.extract %e[0] : vector<2xf32> from vector<2x2xf32>
    vector.store %e0, %y[%c0] : memref<64xf32>, vector<2xf32>
    %t = vector.load %y[%c0] : memref<64xf32>, vector<4xf32>
    %t4 = vector.shape_cast %t : vector<4xf32> to vector<4x1xf32>
    %u = vector.load %y[%c0] : memref<64xf32>, vector<2xf32>
    %t2 = vector.shape_cast %u : vector<2xf32> to vector<2x1xf32>
    %f = nvgpu.mma.sync(%t4, %t2, %e) {mmaShape = [16, 8, 8], tf32Enabled}
      : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
    %f0 = vector.extract %f[1] : vector<2xf32> from vector<2x2xf32>
    %r = nvgpu.rcp %f0 {rounding = approx, ftz} : vector<2xf32>
    vector.store %r, %y[%c0] : memref<64xf32>, vector<2xf32>
    gpu.return
  }
  gpu.func @brain(%a: vector<2x2xbf16>, %b: vector<1x2xbf16>, %x: memref<2x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<2x2xf32>
    %c = nvgpu.mma.sync(%a, %b, %zero) {mmaShape = [16, 8, 8]}
      : (vector<2x2xbf16>, vector<1x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
    vector.store %c, %x[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
}
