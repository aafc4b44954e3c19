// C += A * B on the matrix units: a warp for each 16 x 16 tile of C, K a multiple of 16.
module attributes {gpu.container_module} {
  gpu.module @matmul {
    gpu.func @tile(%a: memref<?x1024xf16>, %b: memref<1024x1024xf16>, %c: memref<?x1024xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %k = arith.constant 1024 : index
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %row = arith.muli %by, %c16 : index
      %column = arith.muli %bx, %c16 : index
      scf.for %i = %c0 to %k step %c16 {
        %x = gpu.subgroup_mma_load_matrix %a[%row, %i] {leadDimension = 1024 : index} : memref<?x1024xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
        %y = gpu.subgroup_mma_load_matrix %b[%i, %column] {leadDimension = 1024 : index} : memref<1024x1024xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
        %acc = gpu.subgroup_mma_load_matrix %c[%row, %column] {leadDimension = 1024 : index} : memref<?x1024xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
        %sum = gpu.subgroup_mma_compute %x, %y, %acc : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
        gpu.subgroup_mma_store_matrix %sum, %c[%row, %column] {leadDimension = 1024 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<?x1024xf32>
      }
      gpu.return
    }
  }
  func.func @matmul_f16(%a: memref<?x1024xf16>, %b: memref<1024x1024xf16>, %c: memref<?x1024xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %rows = memref.dim %a, %c0 : memref<?x1024xf16>
    %tiles = arith.ceildivui %rows, %c16 : index
    gpu.launch_func @matmul::@tile blocks in (%c64, %tiles, %c1) threads in (%c32, %c1, %c1) args(%a : memref<?x1024xf16>, %b : memref<1024x1024xf16>, %c : memref<?x1024xf32>)
    return
  }
}
