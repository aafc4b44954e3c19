// out = transpose(x) for sides that are multiples of 32: a tile of 32 x 32 through workgroup memory, whose rows are one
// longer than they are read, so that columns lie in different banks. Each of 32 x 8 threads moves four elements.
#shared = #gpu.address_space<workgroup>
!tile = memref<32x33xf32, #shared>
gpu.module @kernels {
  gpu.func @transpose(%x: memref<?x?xf32>, %out: memref<?x?xf32>) workgroup(%tile: !tile) kernel
      attributes {known_block_size = array<i32: 32, 8, 1>} {
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c32 = arith.constant 32 : index
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %tx = gpu.thread_id x
    %t0 = gpu.thread_id y
    %t1 = arith.addi %t0, %c8 : index
    %t2 = arith.addi %t0, %c16 : index
    %t3 = arith.addi %t0, %c24 : index
    %x0 = arith.muli %bx, %c32 : index
    %y0 = arith.muli %by, %c32 : index
    %col = arith.addi %x0, %tx : index
    %row0 = arith.addi %y0, %t0 : index
    %row1 = arith.addi %y0, %t1 : index
    %row2 = arith.addi %y0, %t2 : index
    %row3 = arith.addi %y0, %t3 : index
    %v0 = memref.load %x[%row0, %col] : memref<?x?xf32>
    %v1 = memref.load %x[%row1, %col] : memref<?x?xf32>
    %v2 = memref.load %x[%row2, %col] : memref<?x?xf32>
    %v3 = memref.load %x[%row3, %col] : memref<?x?xf32>
    memref.store %v0, %tile[%t0, %tx] : !tile
    memref.store %v1, %tile[%t1, %tx] : !tile
    memref.store %v2, %tile[%t2, %tx] : !tile
    memref.store %v3, %tile[%t3, %tx] : !tile
    gpu.barrier
    %to = arith.addi %y0, %tx : index
    %w0 = memref.load %tile[%tx, %t0] : !tile
    %w1 = memref.load %tile[%tx, %t1] : !tile
    %w2 = memref.load %tile[%tx, %t2] : !tile
    %w3 = memref.load %tile[%tx, %t3] : !tile
    %at0 = arith.addi %x0, %t0 : index
    memref.store %w0, %out[%at0, %to] : memref<?x?xf32>
    %at1 = arith.addi %x0, %t1 : index
    memref.store %w1, %out[%at1, %to] : memref<?x?xf32>
    %at2 = arith.addi %x0, %t2 : index
    memref.store %w2, %out[%at2, %to] : memref<?x?xf32>
    %at3 = arith.addi %x0, %t3 : index
    memref.store %w3, %out[%at3, %to] : memref<?x?xf32>
    gpu.return
  }
}
