  // Atomic operations.

  // One place for all threads of the grid.
// each KIND TYPE: addi i8, addi i16, addi i32, addi i64, andi i32, ori i64, xori i32, maxs i32, maxu i8, mins i64, minu i16, muli i32, addf f32, addf f64, addf f16, mulf f32, maximumf f32, minimumf f64, maxnumf f32, minnumf f16
  gpu.func @$KIND_$TYPE(%x: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %c0 = arith.constant 0 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %old = memref.atomic_rmw $KIND %v, %out[%c0] : ($TYPE, memref<?x$TYPE>) -> $TYPE
    gpu.return
  }
// end

  // What it was before: each number once.
  gpu.func @tickets(%counter: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %old = memref.atomic_rmw addi %one, %counter[%c0] : (i32, memref<?xi32>) -> i32
    memref.store %old, %out[%at] : memref<?xi32>
    gpu.return
  }

  gpu.func @assigned(%x: memref<?xi64>, %out: memref<?xi64>) kernel {
    %c0 = arith.constant 0 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi64>
    %old = memref.atomic_rmw assign %v, %out[%c0] : (i64, memref<?xi64>) -> i64
    gpu.return
  }

  // Adds and wraps at 1000.
  gpu.func @own_step(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %end = arith.constant 1000 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r = memref.generic_atomic_rmw %out[%c0] : memref<?xi32> {
    ^bb0(%old: i32):
      %sum = arith.addi %old, %v : i32
      %new = arith.remui %sum, %end : i32
      memref.atomic_yield %new : i32
    }
    gpu.return
  }

  gpu.func @own_float_step(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xf32>
    %r = memref.generic_atomic_rmw %out[%c0] : memref<?xf32> {
    ^bb0(%old: f32):
      %twice = arith.addf %v, %v : f32
      %new = arith.addf %old, %twice : f32
      memref.atomic_yield %new : f32
    }
    gpu.return
  }

  // New values that do not depend on the old ones; each thread has its own place.
// each TYPE BITS: i8 i8, i16 i16, i32 i32, i64 i64, f16 i16, bf16 i16, f32 i32, f64 i64
  gpu.func @exchange_$TYPE(%x: memref<?x$TYPE>, %y: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %first = memref.generic_atomic_rmw %y[%at] : memref<?x$TYPE> {
    ^bb0(%old: $TYPE):
      memref.atomic_yield %v : $TYPE
    }
    memref.store %first, %out[%at] : memref<?x$TYPE>
    %second = memref.generic_atomic_rmw %x[%at] : memref<?x$TYPE> {
    ^bb0(%old: $TYPE):
      %bits = arith.constant 0 : $BITS
      %new = arith.bitcast %bits : $BITS to $TYPE
      memref.atomic_yield %new : $TYPE
    }
    gpu.return
  }
// end

  // A lock-free maximum, by hand.
  gpu.func @compare_and_exchange(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %address = memref.extract_aligned_pointer_as_index %out : memref<?xi32> -> index
    %number = arith.index_cast %address : index to i64
    %pointer = llvm.inttoptr %number : i64 to !llvm.ptr
    %none = arith.constant -2147483648 : i32
    %last = scf.while (%seen = %none) : (i32) -> i32 {
      %most = arith.maxsi %seen, %v : i32
      %pair = llvm.cmpxchg %pointer, %seen, %most acq_rel monotonic : !llvm.ptr, i32
      %now = llvm.extractvalue %pair[0] : !llvm.struct<(i32, i1)>
      %done = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>
      %true = arith.constant true
      %again = arith.xori %done, %true : i1
      scf.condition(%again) %now : i32
    } do {
    ^bb0(%seen: i32):
      scf.yield %seen : i32
    }
    gpu.return
  }

  // Counts in workgroup memory first, then once per block and value.
  gpu.func @histogram(%x: memref<?xi32>, %out: memref<?xi32>)
      workgroup(%counts: memref<7xi32, #gpu.address_space<workgroup>>) kernel {
    %c7 = arith.constant 7 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %n = func.call @threads() : () -> index
    scf.for %i = %t to %c7 step %n {
      memref.store %zero, %counts[%i] : memref<7xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %v = memref.load %x[%at] : memref<?xi32>
    %value = arith.index_cast %v : i32 to index
    %old = memref.atomic_rmw addi %one, %counts[%value] : (i32, memref<7xi32, #gpu.address_space<workgroup>>) -> i32
    gpu.barrier
    scf.for %i = %t to %c7 step %n {
      %count = memref.load %counts[%i] : memref<7xi32, #gpu.address_space<workgroup>>
      %before = memref.atomic_rmw addi %count, %out[%i] : (i32, memref<?xi32>) -> i32
    }
    gpu.return
  }
