// Loops of threads, several steps of which GPUs take at once: for golden/joined_steps.lowered.check.
module attributes {gpu.container_module} {
  // Sums stay in order; the step is a number.
  gpu.module @added {
    gpu.func @added(%x: memref<?xi32>, %sums: memref<?xi32>, %first: index, %end: index) kernel {
      %c0 = arith.constant 0 : i32
      %c3 = arith.constant 3 : i32
      %c64 = arith.constant 64 : index
      %t = gpu.thread_id x
      %start = arith.addi %t, %first : index
      %sum = scf.for %i = %start to %end step %c64 iter_args(%s = %c0) -> i32 {
        %v = memref.load %x[%i] : memref<?xi32>
        %w = arith.xori %v, %c3 : i32
        %m = arith.muli %s, %c3 : i32
        %r = arith.addi %m, %w : i32
        scf.yield %r : i32
      }
      memref.store %sum, %sums[%t] : memref<?xi32>
      gpu.return
    }
  }
  // And where it is not, and the counter has 32 bits, down to below 0.
  gpu.module @strided {
    gpu.func @strided(%x: memref<?xi32>, %sums: memref<?x2xi32>, %first: i32, %end: i32, %step: i32) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %n = memref.dim %x, %c0 : memref<?xi32>
      %t = gpu.thread_id x
      %own = arith.index_cast %t : index to i32
      %start = arith.addi %own, %first : i32
      %sum, %count = scf.for %i = %start to %end step %step iter_args(%s = %zero, %c = %zero) -> (i32, i32) : i32 {
        %j = arith.index_cast %i : i32 to index
        %k = arith.remsi %j, %n : index
        %a = math.absi %k : index
        %v = memref.load %x[%a] : memref<?xi32>
        %r = arith.addi %s, %v : i32
        %d = arith.addi %c, %i : i32
        scf.yield %r, %d : i32, i32
      }
      memref.store %sum, %sums[%t, %c0] : memref<?x2xi32>
      memref.store %count, %sums[%t, %c1] : memref<?x2xi32>
      gpu.return
    }
  }
  // A step that stores may store what the next one loads; one that exchanges needs the others there.
  gpu.module @stepwise {
    gpu.func @stepwise(%x: memref<?xi32>, %n: index) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      %c1 = arith.constant 1 : index
      scf.for %i = %c1 to %n step %c1 {
        %j = arith.subi %i, %c1 : index
        %a = memref.load %x[%j] : memref<?xi32>
        %b = memref.load %x[%i] : memref<?xi32>
        %s = arith.addi %a, %b : i32
        memref.store %s, %x[%i] : memref<?xi32>
      }
      gpu.return
    }
    gpu.func @exchanging(%x: memref<?xi32>, %y: memref<?xi32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %all = arith.constant 32 : i32
      %t = gpu.thread_id x
      %half = arith.shrui %t, %c1 : index
      %zero_index = arith.constant 0 : index
      %sum = scf.for %i = %zero_index to %half step %c1 iter_args(%s = %zero) -> i32 {
        %v = memref.load %x[%i] : memref<?xi32>
        %other, %valid = gpu.shuffle xor %v, %one, %all : i32
        %r = arith.addi %s, %other : i32
        scf.yield %r : i32
      }
      memref.store %sum, %y[%t] : memref<?xi32>
      gpu.return
    }
  }
}
