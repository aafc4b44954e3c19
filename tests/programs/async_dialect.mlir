// The async dialect around GPU work: values that are tokens of the gpu dialect, groups, functions, loops.
gpu.module @work {
  gpu.func @add(%x: memref<?xi32>, %v: i32) kernel {
    %t = gpu.thread_id x
    %a = memref.load %x[%t] : memref<?xi32>
    %r = arith.addi %a, %v : i32
    memref.store %r, %x[%t] : memref<?xi32>
    gpu.return
  }
}

// y = (x + 1) + 2: the second region waits for the first one's stream.
func.func @chain(%x: memref<?xi32>, %y: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %d = gpu.alloc (%n) : memref<?xi32>
  %first, %copied = async.execute -> !async.value<!gpu.async.token> {
    %t0 = gpu.wait async
    %t1 = gpu.memcpy async [%t0] %d, %x : memref<?xi32>, memref<?xi32>
    %t2 = gpu.launch_func async [%t1] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%d : memref<?xi32>, %one : i32)
    async.yield %t2 : !gpu.async.token
  }
  %second, %added = async.execute [%first] (%copied as %t: !async.value<!gpu.async.token>)
      -> !async.value<!gpu.async.token> {
    %t3 = gpu.launch_func async [%t] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%d : memref<?xi32>, %two : i32)
    async.yield %t3 : !gpu.async.token
  }
  %done = async.await %added : !async.value<!gpu.async.token>
  %t4 = gpu.memcpy async [%done] %y, %d : memref<?xi32>, memref<?xi32>
  gpu.wait [%t4]
  async.await %second : !async.token
  gpu.dealloc %d : memref<?xi32>
  return
}

// A token and a value through an async function; what it returns besides is a number.
async.func private @grown(%x: memref<?xi32>, %v: i32) -> (!async.token, !async.value<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %d = gpu.alloc host_shared (%n) : memref<?xi32>
  gpu.memcpy %d, %x : memref<?xi32>, memref<?xi32>
  gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1) args(%d : memref<?xi32>, %v : i32)
  %r = memref.load %d[%c0] : memref<?xi32>
  gpu.dealloc %d : memref<?xi32>
  async.return %r : i32
}
func.func @called(%x: memref<?xi32>, %v: i32) -> i32 {
  %t, %value = async.call @grown(%x, %v) : (memref<?xi32>, i32) -> (!async.token, !async.value<i32>)
  async.await %t : !async.token
  %r = async.await %value : !async.value<i32>
  return %r : i32
}

// A group of tokens made in a loop, one of them in a branch; returns the sum of the ranks.
func.func @group(%n: index, %x: memref<?xi32>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = async.create_group %n : !async.group
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> index {
    %even = arith.remui %i, %c1 : index
    %is = arith.cmpi eq, %even, %c0 : index
    %t = scf.if %is -> !async.token {
      %u = async.execute {
        %v = arith.index_cast %i : index to i32
        memref.store %v, %x[%i] : memref<?xi32>
        async.yield
      }
      scf.yield %u : !async.token
    } else {
      %u = async.execute {
        async.yield
      }
      scf.yield %u : !async.token
    }
    %rank = async.add_to_group %t, %g : !async.token
    %r = arith.addi %s, %rank : index
    scf.yield %r : index
  }
  async.await_all %g
  return %sum : index
}

// A value chosen from two regions.
func.func @chosen(%which: i1, %x: i32) -> i32 {
  %a, %twice = async.execute -> !async.value<i32> {
    %r = arith.addi %x, %x : i32
    async.yield %r : i32
  }
  %b, %square = async.execute -> !async.value<i32> {
    %r = arith.muli %x, %x : i32
    async.yield %r : i32
  }
  %value = arith.select %which, %twice, %square : !async.value<i32>
  %r = async.await %value : !async.value<i32>
  return %r : i32
}
