// Barriers: in loops of other lengths in each block, in branches, with values and private memory alive across them.
!tile = memref<1024xi32, #gpu.address_space<workgroup>>
gpu.module @barriers {
  // Each block's part of x is rotated left by one, times[block] times.
  gpu.func @rotate(%x: memref<?xi32>, %times: memref<?xindex>) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %n = gpu.block_dim x
    %start = arith.muli %b, %n : index
    %i = arith.addi %start, %t : index
    %next = arith.addi %t, %c1 : index
    %from = arith.remui %next, %n : index
    %mine = memref.load %x[%i] : memref<?xi32>
    %count = memref.load %times[%b] : memref<?xindex>
    %last = scf.for %k = %c0 to %count step %c1 iter_args(%v = %mine) -> i32 {
      memref.store %v, %tile[%t] : !tile
      gpu.barrier
      %w = memref.load %tile[%from] : !tile
      gpu.barrier
      scf.yield %w : i32
    }
    memref.store %last, %x[%i] : memref<?xi32>
    gpu.return
  }

  // The sum of a block by halving, until one is left: a while loop with a barrier, and one in a branch.
  gpu.func @halve(%x: memref<?xi32>, %out: memref<?xi32>) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %n = gpu.block_dim x
    %start = arith.muli %b, %n : index
    %i = arith.addi %start, %t : index
    %v = memref.load %x[%i] : memref<?xi32>
    memref.store %v, %tile[%t] : !tile
    %many = arith.cmpi ugt, %n, %c1 : index
    scf.if %many {
      gpu.barrier
    }
    %one = scf.while (%size = %n) : (index) -> index {
      %more = arith.cmpi ugt, %size, %c1 : index
      scf.condition(%more) %size : index
    } do {
    ^bb0(%size: index):
      %half = arith.ceildivui %size, %c2 : index
      %other = arith.addi %t, %half : index
      %active = arith.cmpi ult, %other, %size : index
      scf.if %active {
        %a = memref.load %tile[%t] : !tile
        %c = memref.load %tile[%other] : !tile
        %sum = arith.addi %a, %c : i32
        memref.store %sum, %tile[%t] : !tile
      }
      gpu.barrier
      scf.yield %half : index
    }
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %sum = memref.load %tile[%c0] : !tile
      memref.store %sum, %out[%b] : memref<?xi32>
    }
    gpu.return
  }

  // Private memory, filled before a barrier and read after it, is the thread's own.
  gpu.func @keep(%out: memref<?xi32>) workgroup(%tile: !tile)
      private(%own: memref<4xi32, #gpu.address_space<private>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %n = gpu.block_dim x
    %ti = arith.index_cast %t : index to i32
    scf.for %k = %c0 to %c4 step %c1 {
      %ki = arith.index_cast %k : index to i32
      %v = arith.muli %ti, %ki : i32
      memref.store %v, %own[%k] : memref<4xi32, #gpu.address_space<private>>
    }
    gpu.barrier
    gpu.barrier
    %v = memref.load %own[%c3] : memref<4xi32, #gpu.address_space<private>>
    %start = arith.muli %b, %n : index
    %i = arith.addi %start, %t : index
    memref.store %v, %out[%i] : memref<?xi32>
    gpu.barrier
    gpu.return
  }

  // A block of three dimensions turns its box of values around.
  gpu.func @turn(%x: memref<?x?x?xi32>) workgroup(%tile: !tile) kernel {
    %c1 = arith.constant 1 : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %nx = gpu.block_dim x
    %ny = gpu.block_dim y
    %nz = gpu.block_dim z
    %v = memref.load %x[%tz, %ty, %tx] : memref<?x?x?xi32>
    %zy = arith.muli %tz, %ny : index
    %row = arith.addi %zy, %ty : index
    %rowx = arith.muli %row, %nx : index
    %at = arith.addi %rowx, %tx : index
    memref.store %v, %tile[%at] : !tile
    gpu.barrier
    %nxy = arith.muli %nx, %ny : index
    %all = arith.muli %nxy, %nz : index
    %last = arith.subi %all, %c1 : index
    %from = arith.subi %last, %at : index
    %w = memref.load %tile[%from] : !tile
    memref.store %w, %x[%tz, %ty, %tx] : memref<?x?x?xi32>
    gpu.return
  }

  // Threads of a warp wait a different number of times; all wait for the block in the end.
  gpu.func @uneven_work(%x: memref<?xi32>) workgroup(%tile: !tile) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %t = gpu.thread_id x
    %n = gpu.block_dim x
    %zero = arith.constant 0 : i32
    %count = scf.for %k = %c0 to %t step %c1 iter_args(%v = %zero) -> i32 {
      %w = arith.addi %v, %one : i32
      scf.yield %w : i32
    }
    memref.store %count, %tile[%t] : !tile
    gpu.barrier
    %last = arith.subi %n, %c1 : index
    %from = arith.subi %last, %t : index
    %w = memref.load %tile[%from] : !tile
    memref.store %w, %x[%t] : memref<?xi32>
    gpu.return
  }
}
