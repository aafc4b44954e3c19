  // Control flow that parts the threads.

  // How many steps of 3n + 1 lead to 1.
  gpu.func @divergent_while(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r:2 = scf.while (%n = %v, %steps = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi sgt, %n, %one : i32
      scf.condition(%more) %n, %steps : i32, i32
    } do {
    ^bb0(%n: i32, %steps: i32):
      %bit = arith.andi %n, %one : i32
      %odd = arith.cmpi eq, %bit, %one : i32
      %next = scf.if %odd -> i32 {
        %a = arith.muli %n, %three : i32
        %b = arith.addi %a, %one : i32
        scf.yield %b : i32
      } else {
        %a = arith.divui %n, %two : i32
        scf.yield %a : i32
      }
      %more = arith.addi %steps, %one : i32
      scf.yield %next, %more : i32, i32
    }
    memref.store %r#1, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @divergent_for(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %end = arith.index_cast %v : i32 to index
    %r = scf.for %i = %c0 to %end step %c3 iter_args(%s = %zero) -> i32 {
      %ii = arith.index_cast %i : index to i32
      %n = arith.addi %s, %ii : i32
      scf.yield %n : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @nested_branches(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %m2 = arith.remui %v, %c2 : i32
    %m3 = arith.remui %v, %c3 : i32
    %even = arith.cmpi eq, %m2, %zero : i32
    %third = arith.cmpi eq, %m3, %zero : i32
    %r = scf.if %even -> i32 {
      %a = scf.if %third -> i32 {
        %n = arith.muli %v, %c3 : i32
        scf.yield %n : i32
      } else {
        scf.yield %c2 : i32
      }
      scf.yield %a : i32
    } else {
      %a = scf.if %third -> i32 {
        %n = arith.subi %zero, %v : i32
        scf.yield %n : i32
      } else {
        scf.yield %v : i32
      }
      scf.yield %a : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @structured_switch(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c4 = arith.constant 4 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %m = arith.remui %v, %c4 : i32
    %way = arith.index_cast %m : i32 to index
    %r = scf.index_switch %way -> i32
    case 0 {
      %a = arith.constant 100 : i32
      scf.yield %a : i32
    }
    case 2 {
      %a = arith.addi %v, %v : i32
      scf.yield %a : i32
    }
    default {
      scf.yield %m : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @plain_switch(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c5 = arith.constant 5 : i32
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %m = arith.remui %v, %c5 : i32
    cf.switch %m : i32, [
      default: ^other(%v : i32),
      0: ^fall,
      3: ^other(%one : i32)
    ]
  ^fall:
    %seven = arith.constant 7 : i32
    cf.br ^other(%seven : i32)
  ^other(%r: i32):
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  // So many ways that NVIDIA's code has a table of labels.
  gpu.func @wide_switch(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c9 = arith.constant 9 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %m = arith.remui %v, %c9 : i32
    %way = arith.index_cast %m : i32 to index
    %r = scf.index_switch %way -> i32
    case 0 {
      %w = arith.addi %v, %c9 : i32
      scf.yield %w : i32
    }
    case 1 {
      %w = arith.muli %v, %v : i32
      scf.yield %w : i32
    }
    case 2 {
      %w = arith.xori %v, %c9 : i32
      scf.yield %w : i32
    }
    case 3 {
      %w = arith.subi %v, %c9 : i32
      scf.yield %w : i32
    }
    case 4 {
      %w = arith.shrui %v, %c9 : i32
      scf.yield %w : i32
    }
    case 5 {
      %w = arith.ori %v, %c9 : i32
      scf.yield %w : i32
    }
    case 6 {
      %w = arith.divui %v, %c9 : i32
      scf.yield %w : i32
    }
    case 7 {
      %w = arith.andi %v, %c9 : i32
      scf.yield %w : i32
    }
    default {
      scf.yield %v : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @early_return(%x: memref<?xi32>, %limit: index) kernel {
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %outside = arith.cmpi uge, %at, %limit : index
    cf.cond_br %outside, ^end, ^inside
  ^inside:
    %v = memref.load %x[%at] : memref<?xi32>
    %zero = arith.constant 0 : i32
    %negative = arith.cmpi slt, %v, %zero : i32
    cf.cond_br %negative, ^end, ^positive
  ^positive:
    %r = arith.addi %v, %one : i32
    memref.store %r, %x[%at] : memref<?xi32>
    gpu.return
  ^end:
    gpu.return
  }

  func.func private @third(%v: i32) -> i32 {
    %c = arith.constant 3 : i32
    %r = arith.addi %v, %c : i32
    return %r : i32
  }
  func.func private @second(%v: i32, %deep: i1) -> i32 {
    %r = scf.if %deep -> i32 {
      %s = func.call @third(%v) : (i32) -> i32
      %t = func.call @third(%s) : (i32) -> i32
      scf.yield %t : i32
    } else {
      scf.yield %v : i32
    }
    return %r : i32
  }
  func.func private @first(%v: i32) -> (i32, i32) {
    %one = arith.constant 1 : i32
    %bit = arith.andi %v, %one : i32
    %odd = arith.cmpi eq, %bit, %one : i32
    %a = func.call @second(%v, %odd) : (i32, i1) -> i32
    %b = func.call @third(%a) : (i32) -> i32
    return %a, %b : i32, i32
  }
  gpu.func @nested_calls(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r:2 = func.call @first(%v) : (i32) -> (i32, i32)
    gpu.barrier
    %s:2 = func.call @first(%r#1) : (i32) -> (i32, i32)
    %d = arith.muli %r#0, %s#1 : i32
    memref.store %d, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @region_in_place(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = scf.execute_region -> i32 {
      %negative = arith.cmpi slt, %v, %zero : i32
      cf.cond_br %negative, ^minus, ^plus(%v : i32)
    ^minus:
      %m = arith.subi %zero, %v : i32
      cf.br ^plus(%m : i32)
    ^plus(%p: i32):
      scf.yield %p : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  // A thread per element of a grid that is larger than the array.
  gpu.func @grid_stride(%x: memref<?xi32>, %n: index) kernel {
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %threads = func.call @threads() : () -> index
    %gx = gpu.grid_dim x
    %gy = gpu.grid_dim y
    %gz = gpu.grid_dim z
    %0 = arith.muli %threads, %gx : index
    %1 = arith.muli %0, %gy : index
    %all = arith.muli %1, %gz : index
    scf.for %i = %at to %n step %all {
      %v = memref.load %x[%i] : memref<?xi32>
      %w = arith.addi %v, %one : i32
      memref.store %w, %x[%i] : memref<?xi32>
    }
    gpu.return
  }
