  // Memory of the block, of a thread and of the module.
  memref.global "private" constant @table : memref<4xf64> = dense<[0.5, -1.0, 2.5, 1000.0]>
  memref.global "private" constant @grid : memref<2x3xi16> = dense<[[1, 2, 3], [-4, -5, -6]]>
  memref.global "private" @board : memref<1024xi32, #gpu.address_space<workgroup>>

  gpu.func @dynamic(%x: memref<?xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %bytes[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xi64, #gpu.address_space<workgroup>>
    %v = memref.load %x[%at] : memref<?xi64>
    memref.store %v, %tile[%t] : memref<?xi64, #gpu.address_space<workgroup>>
    gpu.barrier
    %a = arith.subi %n, %t : index
    %other = arith.subi %a, %c1 : index
    %w = memref.load %tile[%other] : memref<?xi64, #gpu.address_space<workgroup>>
    memref.store %w, %x[%at] : memref<?xi64>
    gpu.return
  }

  // Attributions of several types, a global of the module and dynamic memory do not overlap.
  gpu.func @all_kinds(%x: memref<?xi32>)
      workgroup(%bytes: memref<1024xi8, #gpu.address_space<workgroup>>,
                %doubles: memref<1024xf64, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %board = memref.get_global @board : memref<1024xi32, #gpu.address_space<workgroup>>
    %raw = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %more = memref.view %raw[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xi32, #gpu.address_space<workgroup>>
    %v = memref.load %x[%at] : memref<?xi32>
    %byte = arith.trunci %v : i32 to i8
    %double = arith.sitofp %v : i32 to f64
    %seven = arith.constant 7 : i32
    %times = arith.muli %v, %seven : i32
    memref.store %byte, %bytes[%t] : memref<1024xi8, #gpu.address_space<workgroup>>
    memref.store %double, %doubles[%t] : memref<1024xf64, #gpu.address_space<workgroup>>
    memref.store %v, %board[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %times, %more[%t] : memref<?xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %a = memref.load %bytes[%other] : memref<1024xi8, #gpu.address_space<workgroup>>
    %b = memref.load %doubles[%other] : memref<1024xf64, #gpu.address_space<workgroup>>
    %c = memref.load %board[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    %d = memref.load %more[%other] : memref<?xi32, #gpu.address_space<workgroup>>
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.fptosi %b : f64 to i32
    %s0 = arith.addi %a32, %b32 : i32
    %s1 = arith.addi %s0, %c : i32
    %s2 = arith.addi %s1, %d : i32
    memref.store %s2, %x[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @transposed(%x: memref<?x32x32xf32>)
      workgroup(%tile: memref<32x33xf32, #gpu.address_space<workgroup>>) kernel {
    %b = gpu.block_id x
    %i = gpu.thread_id x
    %j = gpu.thread_id y
    %v = memref.load %x[%b, %j, %i] : memref<?x32x32xf32>
    memref.store %v, %tile[%j, %i] : memref<32x33xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %tile[%i, %j] : memref<32x33xf32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%b, %j, %i] : memref<?x32x32xf32>
    gpu.return
  }

  // The digits of a number, kept across a barrier and read in the other order.
  gpu.func @private_array(%x: memref<?xi32>) private(%digits: memref<8xi32, #gpu.address_space<private>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0 : i32
    %sixteen = arith.constant 16 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %rest = scf.for %i = %c0 to %c8 step %c1 iter_args(%n = %v) -> i32 {
      %digit = arith.remui %n, %sixteen : i32
      memref.store %digit, %digits[%i] : memref<8xi32, #gpu.address_space<private>>
      %next = arith.divui %n, %sixteen : i32
      scf.yield %next : i32
    }
    gpu.barrier
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%n = %rest) -> i32 {
      %digit = memref.load %digits[%i] : memref<8xi32, #gpu.address_space<private>>
      %times = arith.muli %n, %sixteen : i32
      %next = arith.addi %times, %digit : i32
      scf.yield %next : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // A million rounds: memory that each took anew would not fit any stack.
  gpu.func @memory_in_a_loop(%x: memref<?xi32>, %rounds: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%n = %v) -> i32 {
      %pair = memref.alloca() : memref<16xi32>
      %ii = arith.index_cast %i : index to i32
      memref.store %n, %pair[%c0] : memref<16xi32>
      memref.store %ii, %pair[%c1] : memref<16xi32>
      %a = memref.load %pair[%c0] : memref<16xi32>
      %b = memref.load %pair[%c1] : memref<16xi32>
      %next = arith.addi %a, %b : i32
      scf.yield %next : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Each round reads what the round before left in memory of its own.
  gpu.func @memory_passed_on(%x: memref<?xi32>, %rounds: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %first = memref.alloca() : memref<2xi32>
    memref.store %v, %first[%c0] : memref<2xi32>
    memref.store %one, %first[%c1] : memref<2xi32>
    %last = scf.for %i = %c0 to %rounds step %c1 iter_args(%before = %first) -> memref<2xi32> {
      %now = memref.alloca() : memref<2xi32>
      %a = memref.load %before[%c0] : memref<2xi32>
      memref.store %a, %now[%c1] : memref<2xi32>
      %b = memref.load %before[%c1] : memref<2xi32>
      %sum = arith.addi %a, %b : i32
      memref.store %sum, %now[%c0] : memref<2xi32>
      gpu.barrier
      scf.yield %now : memref<2xi32>
    }
    %r = memref.load %last[%c0] : memref<2xi32>
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // 64 KiB of a thread's own.
  gpu.func @deep(%x: memref<?xi32>) private(%deep: memref<16384xi32, #gpu.address_space<private>>) kernel {
    %c0 = arith.constant 0 : index
    %c97 = arith.constant 97 : index
    %size = arith.constant 16384 : index
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    scf.for %i = %c0 to %size step %c97 {
      %ii = arith.index_cast %i : index to i32
      %w = arith.addi %v, %ii : i32
      memref.store %w, %deep[%i] : memref<16384xi32, #gpu.address_space<private>>
    }
    gpu.barrier
    %r = scf.for %i = %c0 to %size step %c97 iter_args(%s = %zero) -> i32 {
      %w = memref.load %deep[%i] : memref<16384xi32, #gpu.address_space<private>>
      %n = arith.addi %s, %w : i32
      scf.yield %n : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // A size that only the launch knows, in threads that miss a barrier.
  gpu.func @size_of_the_launch(%x: memref<?xi32>, %size: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %ti = arith.index_cast %t : index to i32
    %own = memref.alloca(%size) : memref<?xi32>
    scf.for %i = %c0 to %size step %c1 {
      %ii = arith.index_cast %i : index to i32
      %w = arith.xori %ii, %ti : i32
      memref.store %w, %own[%i] : memref<?xi32>
    }
    %bit = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %bit, %c0 : index
    scf.if %even {
      gpu.barrier
    }
    %r = scf.for %i = %c0 to %size step %c1 iter_args(%s = %zero) -> i32 {
      %w = memref.load %own[%i] : memref<?xi32>
      %n = arith.addi %s, %w : i32
      scf.yield %n : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Two of such a size: the first of one is written where it is made, all else in loops.
  gpu.func @two_of_a_size(%x: memref<?xi32>, %size: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %three = arith.constant 3 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %a = memref.alloca(%size) : memref<?xi32>
    %b = memref.alloca(%size) : memref<?xi32>
    memref.store %v, %a[%c0] : memref<?xi32>
    scf.for %i = %c1 to %size step %c1 {
      %before = arith.subi %i, %c1 : index
      %w = memref.load %a[%before] : memref<?xi32>
      %m = arith.muli %w, %three : i32
      memref.store %m, %a[%i] : memref<?xi32>
    }
    %last = arith.subi %size, %c1 : index
    scf.for %i = %c0 to %size step %c1 {
      %other = arith.subi %last, %i : index
      %w = memref.load %a[%other] : memref<?xi32>
      memref.store %w, %b[%i] : memref<?xi32>
    }
    %r = scf.for %i = %c0 to %size step %c1 iter_args(%s = %v) -> i32 {
      %w = memref.load %b[%i] : memref<?xi32>
      %m = arith.muli %s, %three : i32
      %n = arith.addi %m, %w : i32
      scf.yield %n : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @constants(%which: memref<?xi32>, %out: memref<?xf64>) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %at = func.call @at() : () -> index
    %w = memref.load %which[%at] : memref<?xi32>
    %i = arith.index_cast %w : i32 to index
    %table = memref.get_global @table : memref<4xf64>
    %grid = memref.get_global @grid : memref<2x3xi16>
    %v = memref.load %table[%i] : memref<4xf64>
    %row = arith.remui %i, %c2 : index
    %column = arith.remui %i, %c3 : index
    %g = memref.load %grid[%row, %column] : memref<2x3xi16>
    %d = arith.sitofp %g : i16 to f64
    %r = arith.addf %v, %d : f64
    memref.store %r, %out[%at] : memref<?xf64>
    gpu.return
  }

  // A view with strides and an offset.
  gpu.func @part_of_an_array(%x: memref<?x8xi32>) kernel {
    %c0 = arith.constant 0 : index
    %at = func.call @at() : () -> index
    %part = memref.subview %x[%at, 1] [1, 3] [1, 2] : memref<?x8xi32> to memref<3xi32, strided<[2], offset: ?>>
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.load %part[%c0] : memref<3xi32, strided<[2], offset: ?>>
    %b = memref.load %part[%c1] : memref<3xi32, strided<[2], offset: ?>>
    memref.store %b, %part[%c0] : memref<3xi32, strided<[2], offset: ?>>
    memref.store %a, %part[%c2] : memref<3xi32, strided<[2], offset: ?>>
    gpu.return
  }
