// bins[v] = how often v, from 0 to 255, is in x, whose length is a multiple of 4. `clear` comes first. A block counts
// in workgroup memory, where each lane of its warps has a place of its own for every value, in a bank of its own: all
// lanes of a warp count at a time, whatever the values are. Four runs of each thread are on their way at a time.
#shared = #gpu.address_space<workgroup>
!parts = memref<256x32xi32, #shared>
gpu.module @kernels {
  gpu.func @clear(%bins: memref<256xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %zero = arith.constant 0 : i32
    %t = gpu.thread_id x
    memref.store %zero, %bins[%t] : memref<256xi32>
    gpu.return
  }
  gpu.func @histogram(%x: memref<?xi32>, %bins: memref<256xi32>) workgroup(%parts: !parts) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %t = gpu.thread_id x
    %g = gpu.global_id x
    %blocks = gpu.grid_dim x
    %warp = arith.divui %t, %c32 : index
    %lane = arith.remui %t, %c32 : index
    scf.for %p = %c0 to %c256 step %c16 {
      %v = arith.addi %p, %warp : index
      memref.store %zero, %parts[%v, %lane] : !parts
    }
    gpu.barrier
    %start = arith.muli %g, %c4 : index
    %all = arith.muli %blocks, %c512 : index
    %step = arith.muli %all, %c4 : index
    %steps = arith.muli %step, %c4 : index
    %more = arith.muli %step, %c3 : index
    %limit = arith.subi %n, %more : index
    %rest = scf.for %i = %start to %limit step %steps iter_args(%io = %start) -> index {
      %i1 = arith.addi %i, %step : index
      %i2 = arith.addi %i1, %step : index
      %i3 = arith.addi %i2, %step : index
      %v0 = vector.load %x[%i] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      %v1 = vector.load %x[%i1] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      %v2 = vector.load %x[%i2] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      %v3 = vector.load %x[%i3] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      func.call @count(%v0, %parts, %lane) : (vector<4xi32>, !parts, index) -> ()
      func.call @count(%v1, %parts, %lane) : (vector<4xi32>, !parts, index) -> ()
      func.call @count(%v2, %parts, %lane) : (vector<4xi32>, !parts, index) -> ()
      func.call @count(%v3, %parts, %lane) : (vector<4xi32>, !parts, index) -> ()
      %next = arith.addi %i, %steps : index
      scf.yield %next : index
    }
    scf.for %i = %rest to %n step %step {
      %v = vector.load %x[%i] {alignment = 16 : i64} : memref<?xi32>, vector<4xi32>
      func.call @count(%v, %parts, %lane) : (vector<4xi32>, !parts, index) -> ()
    }
    gpu.barrier
    // A thread adds up a value's counts, each from another bank than its neighbours at the time.
    %adds = arith.cmpi ult, %t, %c256 : index
    scf.if %adds {
      %sum = scf.for %p = %c0 to %c32 step %c1 iter_args(%so = %zero) -> i32 {
        %turned = arith.xori %p, %lane : index
        %v = memref.load %parts[%t, %turned] : !parts
        %r = arith.addi %so, %v : i32
        scf.yield %r : i32
      }
      %o = memref.atomic_rmw addi %sum, %bins[%t] : (i32, memref<256xi32>) -> i32
    }
    gpu.return
  }
  func.func private @count(%values: vector<4xi32>, %parts: !parts, %lane: index) {
    %one = arith.constant 1 : i32
    %e0 = vector.extract %values[0] : i32 from vector<4xi32>
    %e1 = vector.extract %values[1] : i32 from vector<4xi32>
    %e2 = vector.extract %values[2] : i32 from vector<4xi32>
    %e3 = vector.extract %values[3] : i32 from vector<4xi32>
    %b0 = arith.index_castui %e0 : i32 to index
    %b1 = arith.index_castui %e1 : i32 to index
    %b2 = arith.index_castui %e2 : i32 to index
    %b3 = arith.index_castui %e3 : i32 to index
    %o0 = memref.atomic_rmw addi %one, %parts[%b0, %lane] : (i32, !parts) -> i32
    %o1 = memref.atomic_rmw addi %one, %parts[%b1, %lane] : (i32, !parts) -> i32
    %o2 = memref.atomic_rmw addi %one, %parts[%b2, %lane] : (i32, !parts) -> i32
    %o3 = memref.atomic_rmw addi %one, %parts[%b3, %lane] : (i32, !parts) -> i32
    return
  }
}
