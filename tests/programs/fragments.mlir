// Matrices of gpu.subgroup_mma: of blocks that are whole waves of 64 threads, and of blocks that nobody knows.
!A = !gpu.mma_matrix<16x16xf16, "AOp">
!B = !gpu.mma_matrix<16x16xf16, "BOp">
!C = !gpu.mma_matrix<16x16xf32, "COp">
gpu.module @products {
  gpu.func @waves(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %zero = arith.constant 0 : index
    %A = gpu.subgroup_mma_load_matrix %a[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf16> -> !A
    %B = gpu.subgroup_mma_load_matrix %b[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf16> -> !B
    %C = gpu.subgroup_mma_load_matrix %c[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf32> -> !C
    %D = gpu.subgroup_mma_compute %A, %B, %C : !A, !B -> !C
    gpu.subgroup_mma_store_matrix %D, %c[%zero, %zero] {leadDimension = 16 : index} : !C, memref<16x16xf32>
    gpu.return
  }

  gpu.func @warps(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>, %n: index,
                  %x: memref<?xf32>) kernel {
    %zero = arith.constant 0 : index
    %A = gpu.subgroup_mma_load_matrix %a[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf16> -> !A
    %B = gpu.subgroup_mma_load_matrix %b[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf16> -> !B
    %C = gpu.subgroup_mma_load_matrix %c[%zero, %zero] {leadDimension = 16 : index} : memref<16x16xf32> -> !C
    %D = affine.for %i = 0 to %n iter_args(%sum = %C) -> (!C) {
      %pair = affine.vector_load %x[%i] : memref<?xf32>, vector<2xf32>
      affine.vector_store %pair, %x[%i + 2] : memref<?xf32>, vector<2xf32>
      %more = gpu.subgroup_mma_compute %A, %B, %sum : !A, !B -> !C
      affine.yield %more : !C
    }
    gpu.subgroup_mma_store_matrix %D, %c[%zero, %zero] {leadDimension = 16 : index} : !C, memref<16x16xf32>
    gpu.return
  }
}
