// Workgroup memory: two static tiles, dynamic memory behind them, memory of the module, launches with a size.
!space = memref<?xi8, #gpu.address_space<workgroup>>
!small = memref<33xi8, #gpu.address_space<workgroup>>
!words = memref<256xi32, #gpu.address_space<workgroup>>
!floats = memref<?xf32, #gpu.address_space<workgroup>>
module attributes {gpu.container_module} {
  gpu.module @shared {
    memref.global "private" @spare : !words = uninitialized

    // Reverses a block three times over: once in each kind of memory.
    gpu.func @reverse(%x: memref<?xf32>) workgroup(%bytes: !small, %words: !words) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c33 = arith.constant 33 : index
      %seven = arith.constant 7 : i8
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %n = gpu.block_dim x
      %start = arith.muli %b, %n : index
      %i = arith.addi %start, %t : index
      %last = arith.subi %n, %c1 : index
      %from = arith.subi %last, %t : index
      %low = arith.remui %t, %c33 : index
      memref.store %seven, %bytes[%low] : !small
      %x0 = memref.load %x[%i] : memref<?xf32>
      %x0i = arith.bitcast %x0 : f32 to i32
      memref.store %x0i, %words[%t] : !words
      gpu.barrier
      %x1i = memref.load %words[%from] : !words
      %spare = memref.get_global @spare : !words
      memref.store %x1i, %spare[%t] : !words
      gpu.barrier
      %x2i = memref.load %spare[%from] : !words
      %x2 = arith.bitcast %x2i : i32 to f32
      %dynamic = gpu.dynamic_shared_memory : !space
      %bytes_each = arith.muli %n, %c4 : index
      %first = memref.view %dynamic[%c0][%n] : !space to !floats
      %second = memref.view %dynamic[%bytes_each][%n] : !space to !floats
      memref.store %x2, %first[%t] : !floats
      memref.store %x0, %second[%t] : !floats
      gpu.barrier
      %x3 = memref.load %first[%from] : !floats
      %mark = memref.load %bytes[%low] : !small
      %markf = arith.sitofp %mark : i8 to f32
      %sum = arith.addf %x3, %markf : f32
      memref.store %sum, %x[%i] : memref<?xf32>
      gpu.return
    }
  }
  func.func @run(%x: memref<?xf32>, %blocks: index, %threads: index) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : i32
    %n = arith.index_cast %threads : index to i32
    %bytes = arith.muli %n, %c8 : i32
    gpu.launch_func @shared::@reverse blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1)
        dynamic_shared_memory_size %bytes args(%x : memref<?xf32>)
    return
  }
  func.func @inline(%x: memref<?xi32>, %threads: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : i32
    %n32 = arith.index_cast %threads : index to i32
    %bytes = arith.muli %n32, %c4 : i32
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%t, %ty, %tz) in (%n = %threads, %ny = %c1, %nz = %c1)
               dynamic_shared_memory_size %bytes {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %dynamic = gpu.dynamic_shared_memory : !space
      %tile = memref.view %dynamic[%zero][%n] : !space to memref<?xi32, #gpu.address_space<workgroup>>
      %v = memref.load %x[%t] : memref<?xi32>
      memref.store %v, %tile[%t] : memref<?xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %last = arith.subi %n, %one : index
      %from = arith.subi %last, %t : index
      %w = memref.load %tile[%from] : memref<?xi32, #gpu.address_space<workgroup>>
      memref.store %w, %x[%t] : memref<?xi32>
      gpu.terminator
    }
    return
  }
}
