// Every id that a thread can ask for, written at the thread's place in the grid.
gpu.module @ids {
  func.func private @place() -> index {
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %bz = gpu.block_id z
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %dz = gpu.block_dim z
    %gx = gpu.grid_dim x
    %gy = gpu.grid_dim y
    %zy = arith.muli %tz, %dy : index
    %y = arith.addi %zy, %ty : index
    %yx = arith.muli %y, %dx : index
    %thread = arith.addi %yx, %tx : index
    %bzy = arith.muli %bz, %gy : index
    %b1 = arith.addi %bzy, %by : index
    %b2 = arith.muli %b1, %gx : index
    %block = arith.addi %b2, %bx : index
    %s1 = arith.muli %dx, %dy : index
    %size = arith.muli %s1, %dz : index
    %base = arith.muli %block, %size : index
    %at = arith.addi %base, %thread : index
    return %at : index
  }
  gpu.func @all(%out: memref<?x?xindex>) kernel {
    %at = func.call @place() : () -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %c10 = arith.constant 10 : index
    %c11 = arith.constant 11 : index
    %c12 = arith.constant 12 : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %bz = gpu.block_id z
    %lane = gpu.lane_id
    %warp = gpu.subgroup_id : index
    %warps = gpu.num_subgroups : index
    %width = gpu.subgroup_size : index
    %global_x = gpu.global_id x
    %global_y = gpu.global_id y
    %global_z = gpu.global_id z
    memref.store %tx, %out[%at, %c0] : memref<?x?xindex>
    memref.store %ty, %out[%at, %c1] : memref<?x?xindex>
    memref.store %tz, %out[%at, %c2] : memref<?x?xindex>
    memref.store %bx, %out[%at, %c3] : memref<?x?xindex>
    memref.store %by, %out[%at, %c4] : memref<?x?xindex>
    memref.store %bz, %out[%at, %c5] : memref<?x?xindex>
    memref.store %lane, %out[%at, %c6] : memref<?x?xindex>
    memref.store %warp, %out[%at, %c7] : memref<?x?xindex>
    memref.store %warps, %out[%at, %c8] : memref<?x?xindex>
    memref.store %width, %out[%at, %c9] : memref<?x?xindex>
    memref.store %global_x, %out[%at, %c10] : memref<?x?xindex>
    memref.store %global_y, %out[%at, %c11] : memref<?x?xindex>
    memref.store %global_z, %out[%at, %c12] : memref<?x?xindex>
    gpu.return
  }
  // The same after a barrier, where threads run as coroutines.
  gpu.func @after_barrier(%out: memref<?xindex>) kernel {
    gpu.barrier
    %at = func.call @place() : () -> index
    memref.store %at, %out[%at] : memref<?xindex>
    gpu.return
  }
}
