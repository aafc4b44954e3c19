// bins[v] = how often v is in x, for 256 values. Each of up to 64 blocks counts a part in workgroup memory and adds its
// bins to the result, both atomically.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @clear_kernel(%bins: memref<?xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %zero = arith.constant 0 : i32
      %t = gpu.thread_id x
      memref.store %zero, %bins[%t] : memref<?xi32>
      gpu.return
    }

    gpu.func @histogram_kernel(%x: memref<?xi32>, %bins: memref<?xi32>)
        workgroup(%counts: memref<256xi32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %n = memref.dim %x, %c0 : memref<?xi32>
      %block = gpu.block_id x
      %blocks = gpu.grid_dim x
      %t = gpu.thread_id x
      %part_size = arith.ceildivui %n, %blocks : index
      %start = arith.muli %block, %part_size : index
      %first = arith.addi %start, %t : index
      %past = arith.addi %start, %part_size : index
      %end = arith.minui %past, %n : index
      memref.store %zero, %counts[%t] : memref<256xi32, #shared>
      gpu.barrier
      scf.for %i = %first to %end step %c256 {
        %v = memref.load %x[%i] : memref<?xi32>
        %bin = arith.index_cast %v : i32 to index
        %old = memref.atomic_rmw addi %one, %counts[%bin] : (i32, memref<256xi32, #shared>) -> i32
      }
      gpu.barrier
      %count = memref.load %counts[%t] : memref<256xi32, #shared>
      %old = memref.atomic_rmw addi %count, %bins[%t] : (i32, memref<?xi32>) -> i32
      gpu.return
    }
  }

  func.func @histogram(%x: memref<?xi32>, %bins: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %c1024 = arith.constant 1024 : index
    %n = memref.dim %x, %c0 : memref<?xi32>
    %of_1024 = arith.ceildivui %n, %c1024 : index
    %blocks = arith.minui %of_1024, %c64 : index
    gpu.launch_func @kernels::@clear_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%bins : memref<?xi32>)
    gpu.launch_func @kernels::@histogram_kernel blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?xi32>, %bins : memref<?xi32>)
    return
  }
}
