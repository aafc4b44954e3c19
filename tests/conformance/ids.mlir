  // Ids and sizes.
  func.func private @put(%out: memref<?x8xi64>, %column: index, %value: index) {
    %at = func.call @at() : () -> index
    %word = arith.index_cast %value : index to i64
    memref.store %word, %out[%at, %column] : memref<?x8xi64>
    return
  }

  gpu.func @threads_and_blocks(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %bz = gpu.block_id z
    func.call @put(%out, %c0, %tx) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %ty) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c2, %tz) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c3, %bx) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c4, %by) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c5, %bz) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  gpu.func @sizes(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %dz = gpu.block_dim z
    %gx = gpu.grid_dim x
    %gy = gpu.grid_dim y
    %gz = gpu.grid_dim z
    func.call @put(%out, %c0, %dx) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %dy) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c2, %dz) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c3, %gx) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c4, %gy) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c5, %gz) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  gpu.func @lanes(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %lane = gpu.lane_id
    %warp = gpu.subgroup_id : index
    %warps = gpu.num_subgroups : index
    %size = gpu.subgroup_size : index
    func.call @put(%out, %c0, %lane) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %warp) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c2, %warps) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c3, %size) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  gpu.func @globals(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    func.call @put(%out, %c0, %x) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %y) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c2, %z) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  // The same on both sides of a barrier, where threads are loops or coroutines.
  gpu.func @around_a_barrier(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %before = func.call @at() : () -> index
    %lane = gpu.lane_id
    gpu.barrier
    %after = func.call @at() : () -> index
    %difference = arith.subi %after, %before : index
    func.call @put(%out, %c0, %difference) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %lane) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  gpu.func @known_block(%out: memref<?x8xi64>) kernel attributes {known_block_size = array<i32: 48, 2, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %dx = gpu.block_dim x
    %lane = gpu.lane_id
    %warp = gpu.subgroup_id : index
    func.call @put(%out, %c0, %dx) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c1, %lane) : (memref<?x8xi64>, index, index) -> ()
    func.call @put(%out, %c2, %warp) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }

  // With narrow arithmetic in between.
  gpu.func @narrow(%out: memref<?x8xi64>) kernel {
    %c0 = arith.constant 0 : index
    %x = gpu.thread_id x
    %n = arith.index_cast %x : index to i8
    %s = arith.extsi %n : i8 to i64
    %i = arith.index_cast %s : i64 to index
    func.call @put(%out, %c0, %i) : (memref<?x8xi64>, index, index) -> ()
    gpu.return
  }
