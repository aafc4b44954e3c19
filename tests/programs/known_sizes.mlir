// Kernels that say their blocks and grids as older versions of MLIR wrote it; one launch is of another grid.
gpu.module @device {
  gpu.func @agreed(%x: memref<?xi32>) kernel attributes {gpu.known_block_size = array<i32: 32, 1, 1>} {
    %i = gpu.global_id x
    %n = gpu.block_dim x
    %v = arith.index_cast %n : index to i32
    memref.store %v, %x[%i] : memref<?xi32>
    gpu.return
  }
  gpu.func @contradicted(%x: memref<?xi32>) kernel
      attributes {gpu.known_block_size = array<i32: 32, 1, 1>, gpu.known_grid_size = array<i32: 2, 1, 1>} {
    %c3 = arith.constant 3 : index
    %b = gpu.block_id x
    %last = arith.cmpi eq, %b, %c3 : index
    scf.if %last {
      %i = gpu.global_id x
      %v = arith.index_cast %b : index to i32
      memref.store %v, %x[%i] : memref<?xi32>
    }
    gpu.return
  }
  gpu.func @own(%x: memref<?xi32>) kernel
      attributes {known_block_size = array<i32: 8, 1, 1>, gpu.known_block_size = array<i32: 16, 1, 1>} {
    %i = gpu.thread_id x
    %n = gpu.block_dim x
    %v = arith.index_cast %n : index to i32
    memref.store %v, %x[%i] : memref<?xi32>
    gpu.return
  }
}

func.func @run(%x: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  gpu.launch_func @device::@agreed blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xi32>)
  gpu.launch_func @device::@contradicted blocks in (%c4, %c1, %c1) threads in (%c32, %c1, %c1) args(%x : memref<?xi32>)
  return
}
