// targets: host:x86-64-v3
// Kernels with barriers that all threads of a block reach: on the CPU what stands between them becomes loops.
gpu.module @regions {
  // A loaded value is kept for each thread; sums of ids are computed again.
  gpu.func @mirrored(%x: memref<?xf32>) workgroup(%w: memref<256xf32, #gpu.address_space<workgroup>>)
      kernel {
    %c255 = arith.constant 255 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %o = arith.muli %b, %n : index
    %i = arith.addi %o, %t : index
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %w[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %j = arith.subi %c255, %t : index
    %y = memref.load %w[%j] : memref<256xf32, #gpu.address_space<workgroup>>
    %s = arith.addf %v, %y : f32
    memref.store %s, %x[%i] : memref<?xf32>
    gpu.return
  }
  // The loop and its counter are the block's, not the thread's.
  gpu.func @halves(%x: memref<?xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %t = gpu.thread_id x
    scf.for %k = %c0 to %c8 step %c1 {
      %h = arith.shrui %c8, %k : index
      %in = arith.cmpi ult, %t, %h : index
      scf.if %in {
        %j = arith.addi %t, %h : index
        %p = memref.load %x[%t] : memref<?xi32>
        %q = memref.load %x[%j] : memref<?xi32>
        %r = arith.addi %p, %q : i32
        memref.store %r, %x[%t] : memref<?xi32>
      }
      gpu.barrier
    }
    gpu.return
  }
  // One thread of a block may miss a barrier.
  gpu.func @apart(%x: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c9 = arith.constant 9 : i32
    %t = gpu.thread_id x
    %in = arith.cmpi ne, %t, %c0 : index
    scf.if %in {
      gpu.barrier
    }
    memref.store %c9, %x[%t] : memref<?xi32>
    gpu.return
  }
}
