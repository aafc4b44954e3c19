// bins[v] = how often v, from 0 to 255, is in x, whose length is a multiple of 4: each warp counts in a part of
// workgroup memory of its own, and a block adds its counts to the bins at the end. `clear` comes first.
#shared = #gpu.address_space<workgroup>
!parts = memref<8x256xi32, #shared>
gpu.module @kernels {
  gpu.func @clear(%bins: memref<256xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %zero = arith.constant 0 : i32
    %t = gpu.thread_id x
    memref.store %zero, %bins[%t] : memref<256xi32>
    gpu.return
  }
  gpu.func @histogram(%x: memref<?xi32>, %bins: memref<256xi32>) workgroup(%parts: !parts) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %t = gpu.thread_id x
    %g = gpu.global_id x
    %blocks = gpu.grid_dim x
    %threads = gpu.block_dim x
    %warp = arith.divui %t, %c32 : index
    scf.for %p = %c0 to %c8 step %c1 {
      memref.store %zero, %parts[%p, %t] : !parts
    }
    gpu.barrier
    %start = arith.muli %g, %c4 : index
    %all = arith.muli %blocks, %threads : index
    %step = arith.muli %all, %c4 : index
    scf.for %i = %start to %n step %step {
      %v = vector.load %x[%i] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      %e0 = vector.extract %v[0] : i32 from vector<4xi32>
      %b0 = arith.index_castui %e0 : i32 to index
      %o0 = memref.atomic_rmw addi %one, %parts[%warp, %b0] : (i32, !parts) -> i32
      %e1 = vector.extract %v[1] : i32 from vector<4xi32>
      %b1 = arith.index_castui %e1 : i32 to index
      %o1 = memref.atomic_rmw addi %one, %parts[%warp, %b1] : (i32, !parts) -> i32
      %e2 = vector.extract %v[2] : i32 from vector<4xi32>
      %b2 = arith.index_castui %e2 : i32 to index
      %o2 = memref.atomic_rmw addi %one, %parts[%warp, %b2] : (i32, !parts) -> i32
      %e3 = vector.extract %v[3] : i32 from vector<4xi32>
      %b3 = arith.index_castui %e3 : i32 to index
      %o3 = memref.atomic_rmw addi %one, %parts[%warp, %b3] : (i32, !parts) -> i32
    }
    gpu.barrier
    %sum = scf.for %p = %c0 to %c8 step %c1 iter_args(%so = %zero) -> i32 {
      %v = memref.load %parts[%p, %t] : !parts
      %r = arith.addi %so, %v : i32
      scf.yield %r : i32
    }
    %o = memref.atomic_rmw addi %sum, %bins[%t] : (i32, memref<256xi32>) -> i32
    gpu.return
  }
}
