// sum[0] = the sum of x, in two launches of one kernel: up to 256 blocks add up a part each, one block adds their
// sums. A block reduces by a tree in workgroup memory.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sum_kernel(%x: memref<?xf32>, %sums: memref<?xf32>)
        workgroup(%part: memref<256xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %n = memref.dim %x, %c0 : memref<?xf32>
      %block = gpu.block_id x
      %blocks = gpu.grid_dim x
      %t = gpu.thread_id x
      %part_size = arith.ceildivui %n, %blocks : index
      %start = arith.muli %block, %part_size : index
      %first = arith.addi %start, %t : index
      %past = arith.addi %start, %part_size : index
      %end = arith.minui %past, %n : index
      %own = scf.for %i = %first to %end step %c256 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %x[%i] : memref<?xf32>
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      }
      memref.store %own, %part[%t] : memref<256xf32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %half = arith.shrui %c128, %step : index
        %takes_part = arith.cmpi ult, %t, %half : index
        scf.if %takes_part {
          %other = arith.addi %t, %half : index
          %p = memref.load %part[%t] : memref<256xf32, #shared>
          %q = memref.load %part[%other] : memref<256xf32, #shared>
          %r = arith.addf %p, %q : f32
          memref.store %r, %part[%t] : memref<256xf32, #shared>
        }
        gpu.barrier
      }
      %is_first = arith.cmpi eq, %t, %c0 : index
      scf.if %is_first {
        %sum = memref.load %part[%c0] : memref<256xf32, #shared>
        memref.store %sum, %sums[%block] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @reduction(%x: memref<?xf32>, %sum: memref<?xf32>, %partial: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %blocks = memref.dim %partial, %c0 : memref<?xf32>
    gpu.launch_func @kernels::@sum_kernel blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?xf32>, %partial : memref<?xf32>)
    gpu.launch_func @kernels::@sum_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%partial : memref<?xf32>, %sum : memref<?xf32>)
    return
  }
}
