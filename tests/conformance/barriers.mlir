  // Barriers that all threads reach, and barriers that some miss or come to on other ways.
  gpu.func @straight(%x: memref<?xi32>) workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %a = arith.subi %n, %t : index
    %other = arith.subi %a, %c1 : index
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%at] : memref<?xi32>
    gpu.return
  }

  // In each of `times` rounds a thread takes what its neighbour has.
  gpu.func @uniform_for(%x: memref<?xi32>, %times: index)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %times step %c1 iter_args(%mine = %v) -> i32 {
      memref.store %mine, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %w : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Other blocks, other rounds.
  gpu.func @rounds_of_the_block(%x: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %block = func.call @block() : () -> index
    %times = arith.remui %block, %c3 : index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %times step %c1 iter_args(%mine = %v) -> i32 {
      memref.store %mine, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %w : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // A sum by halves: the loop's length follows from the block's size, and fewer threads add in each round.
  gpu.func @uniform_while(%x: memref<?xi32>, %out: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    %last = scf.while (%left = %n) : (index) -> index {
      %more = arith.cmpi ugt, %left, %c1 : index
      scf.condition(%more) %left : index
    } do {
    ^bb0(%left: index):
      gpu.barrier
      %up = arith.addi %left, %c1 : index
      %half = arith.divui %up, %c2 : index
      %from = arith.addi %t, %half : index
      %adds = arith.cmpi ult, %from, %left : index
      scf.if %adds {
        %a = memref.load %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
        %b = memref.load %tile[%from] : memref<1024xi32, #gpu.address_space<workgroup>>
        %s = arith.addi %a, %b : i32
        memref.store %s, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      scf.yield %half : index
    }
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %block = func.call @block() : () -> index
      %s = memref.load %tile[%c0] : memref<1024xi32, #gpu.address_space<workgroup>>
      memref.store %s, %out[%block] : memref<?xi32>
    }
    gpu.return
  }

  gpu.func @nested_loops(%x: memref<?xi32>, %outer: index, %inner: index)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %three = arith.constant 3 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %outer step %c1 iter_args(%mine = %v) -> i32 {
      %s = scf.for %j = %c0 to %inner step %c1 iter_args(%now = %mine) -> i32 {
        memref.store %now, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        scf.yield %w : i32
      }
      %scaled = arith.muli %s, %three : i32
      scf.yield %scaled : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  func.func private @swap(%tile: memref<1024xi32, #gpu.address_space<workgroup>>, %v: i32) -> i32 {
    %c1 = arith.constant 1 : index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %a = arith.subi %n, %t : index
    %other = arith.subi %a, %c1 : index
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    return %w : i32
  }
  gpu.func @in_a_function(%x: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %w = func.call @swap(%tile, %v) : (memref<1024xi32, #gpu.address_space<workgroup>>, i32) -> i32
    %s = arith.addi %v, %w : i32
    %r = func.call @swap(%tile, %s) : (memref<1024xi32, #gpu.address_space<workgroup>>, i32) -> i32
    %d = arith.subi %r, %w : i32
    memref.store %d, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Threads whose number is not below `stay` end first, and nobody waits for them.
  gpu.func @some_end_early(%x: memref<?xi32>, %stay: index)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %ends = arith.cmpi uge, %t, %stay : index
    cf.cond_br %ends, ^end, ^go
  ^go:
    %v = memref.load %x[%at] : memref<?xi32>
    memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %n = func.call @threads() : () -> index
    %m = arith.minui %stay, %n : index
    %a = arith.subi %m, %t : index
    %other = arith.subi %a, %c1 : index
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%at] : memref<?xi32>
    cf.br ^end
  ^end:
    gpu.return
  }

  // A thread goes round as often as its number says; in each round it leaves its round's number and then reads
  // what its neighbour left: the same, or the last that it left before it ended.
  gpu.func @divergent_loop(%out: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    memref.store %zero, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    %m = arith.remui %t, %c5 : index
    %times = arith.addi %m, %c1 : index
    gpu.barrier
    %sum = scf.for %i = %c0 to %times step %c1 iter_args(%s = %zero) -> i32 {
      %round = arith.addi %i, %c1 : index
      %number = arith.index_cast %round : index to i32
      memref.store %number, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %next_sum = arith.addi %s, %w : i32
      scf.yield %next_sum : i32
    }
    memref.store %sum, %out[%at] : memref<?xi32>
    gpu.return
  }

  // One barrier, reached on two ways.
  gpu.func @both_ways(%x: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %ten = arith.constant 10 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %v = memref.load %x[%at] : memref<?xi32>
    %bit = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %bit, %c0 : index
    %r = scf.if %even -> i32 {
      memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      scf.yield %w : i32
    } else {
      %u = arith.addi %v, %ten : i32
      memref.store %u, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      %m = arith.subi %w, %ten : i32
      scf.yield %m : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Three barriers on each way, one of two branches has them all in the first, the other one there and two in the
  // second. (Two in direct succession would be one: MLIR merges them.)
  gpu.func @uneven_ways(%out: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    memref.store %zero, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    %bit = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %bit, %c0 : index
    %odd = arith.cmpi eq, %bit, %c1 : index
    scf.if %even {
      gpu.barrier
      memref.store %zero, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %two, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
    } else {
      gpu.barrier
    }
    scf.if %odd {
      gpu.barrier
      memref.store %one, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
    }
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %w, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @in_a_switch(%x: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %a = arith.subi %n, %t : index
    %other = arith.subi %a, %c1 : index
    %v = memref.load %x[%at] : memref<?xi32>
    memref.store %v, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    %way = arith.remui %t, %c3 : index
    scf.index_switch %way
    case 0 {
      gpu.barrier
      scf.yield
    }
    case 1 {
      gpu.barrier
      scf.yield
    }
    default {
      gpu.barrier
    }
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Work of different length in front of a barrier that all reach.
  gpu.func @after_divergence(%x: memref<?xi32>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %s = scf.for %i = %c0 to %t step %c1 iter_args(%a = %v) -> i32 {
      %ii = arith.index_cast %i : index to i32
      %b = arith.xori %a, %ii : i32
      scf.yield %b : i32
    }
    memref.store %s, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
    gpu.barrier
    %d = arith.subi %n, %t : index
    %other = arith.subi %d, %c1 : index
    %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%at] : memref<?xi32>
    gpu.return
  }

  // How often a loop with a barrier turns is read from memory: from one place, so the same for all.
  gpu.func @rounds_from_memory(%x: memref<?xi32>, %rounds: memref<?xi64>)
      workgroup(%tile: memref<1024xi32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    %next = arith.addi %t, %c1 : index
    %other = arith.remui %next, %n : index
    %times64 = memref.load %rounds[%c0] : memref<?xi64>
    %times = arith.index_cast %times64 : i64 to index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.for %i = %c0 to %times step %c1 iter_args(%mine = %v) -> i32 {
      memref.store %mine, %tile[%t] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%other] : memref<1024xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %w : i32
    }
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  }

  // Values of many types live across a barrier.
  gpu.func @kept_values(%x: memref<?xi32>, %out: memref<?xf64>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %zero = arith.constant 0 : i32
    %bit = arith.cmpi sgt, %v, %zero : i32
    %narrow = arith.trunci %v : i32 to i8
    %wide = arith.extsi %v : i32 to i64
    %half = arith.sitofp %narrow : i8 to f16
    %single = arith.sitofp %v : i32 to f32
    %vector = vector.broadcast %single : f32 to vector<3xf32>
    gpu.barrier
    %a = arith.extf %half : f16 to f64
    %b = arith.sitofp %wide : i64 to f64
    %c = vector.extract %vector[2] : f32 from vector<3xf32>
    %d = arith.extf %c : f32 to f64
    %e = arith.sitofp %narrow : i8 to f64
    %minus = arith.negf %b : f64
    %f = arith.select %bit, %b, %minus : f64
    %s0 = arith.addf %a, %f : f64
    %s1 = arith.addf %s0, %d : f64
    %s2 = arith.addf %s1, %e : f64
    memref.store %s2, %out[%at] : memref<?xf64>
    gpu.return
  }
