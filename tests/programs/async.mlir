// Host programs with tokens: memory, copies, fills and launches that depend on none, one and two others; tokens
// through loops, branches and calls; the same without tokens.
module attributes {gpu.container_module} {
  gpu.module @work {
    gpu.func @add(%x: memref<?xi32>, %v: i32) kernel {
      %b = gpu.block_id x
      %n = gpu.block_dim x
      %t = gpu.thread_id x
      %s = arith.muli %b, %n : index
      %i = arith.addi %s, %t : index
      %c0 = arith.constant 0 : index
      %size = memref.dim %x, %c0 : memref<?xi32>
      %inside = arith.cmpi ult, %i, %size : index
      scf.if %inside {
        %o = memref.load %x[%i] : memref<?xi32>
        %r = arith.addi %o, %v : i32
        memref.store %r, %x[%i] : memref<?xi32>
      }
      gpu.return
    }
    gpu.func @sum(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
      %t = gpu.thread_id x
      %a = memref.load %x[%t] : memref<?xi32>
      %b = memref.load %y[%t] : memref<?xi32>
      %r = arith.addi %a, %b : i32
      memref.store %r, %x[%t] : memref<?xi32>
      gpu.return
    }
  }

  // y = x + 1 through device memory; every operation waits for the one before it.
  func.func @chain(%x: memref<?xi32>, %y: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] (%n) : memref<?xi32>
    %t2 = gpu.memcpy async [%t1] %d, %x : memref<?xi32>, memref<?xi32>
    %t3 = gpu.launch_func async [%t2] @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%d : memref<?xi32>, %one : i32)
    %t4 = gpu.memcpy async [%t3] %y, %d : memref<?xi32>, memref<?xi32>
    %t5 = gpu.dealloc async [%t4] %d : memref<?xi32>
    gpu.wait [%t5]
    return
  }

  // out = (x + 1) + (fill + 2): two streams that meet at the launch and at the copy.
  func.func @diamond(%x: memref<?xi32>, %fill: i32, %out: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %a0 = gpu.wait async
    %b0 = gpu.wait async
    %a, %a1 = gpu.alloc async [%a0] (%n) : memref<?xi32>
    %b, %b1 = gpu.alloc async [%b0] (%n) : memref<?xi32>
    %a2 = gpu.memcpy async [%a1, %b1] %a, %x : memref<?xi32>, memref<?xi32>
    %b2 = gpu.memset async [%b1, %a1] %b, %fill : memref<?xi32>, i32
    %a3 = gpu.launch_func async [%a2] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%a : memref<?xi32>, %one : i32)
    %b3 = gpu.launch_func async [%b2] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%b : memref<?xi32>, %two : i32)
    %both = gpu.launch_func async [%a3, %b3] @work::@sum blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%a : memref<?xi32>, %b : memref<?xi32>)
    %copied = gpu.memcpy async [%both, %b3] %out, %a : memref<?xi32>, memref<?xi32>
    %joined = gpu.wait async [%copied, %both]
    %free_a = gpu.dealloc async [%joined, %b3] %a : memref<?xi32>
    %free_b = gpu.dealloc async [%joined] %b : memref<?xi32>
    gpu.wait [%free_a, %free_b]
    return
  }

  // Adds 1 `times` times; the token goes round the loop.
  func.func @loop(%x: memref<?xi32>, %times: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %t0 = gpu.wait async
    %last = scf.for %i = %c0 to %times step %c1 iter_args(%t = %t0) -> !gpu.async.token {
      %next = gpu.launch_func async [%t] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%x : memref<?xi32>, %one : i32)
      scf.yield %next : !gpu.async.token
    }
    gpu.wait [%last]
    return
  }

  // Adds 10 or fills with 7; the token comes out of the branch. A second token is chosen with a select.
  func.func @branch(%x: memref<?xi32>, %which: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ten = arith.constant 10 : i32
    %seven = arith.constant 7 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %t0 = gpu.wait async
    %t1 = scf.if %which -> !gpu.async.token {
      %t = gpu.launch_func async [%t0] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%x : memref<?xi32>, %ten : i32)
      scf.yield %t : !gpu.async.token
    } else {
      %t = gpu.memset async [%t0] %x, %seven : memref<?xi32>, i32
      scf.yield %t : !gpu.async.token
    }
    %t2 = gpu.launch_func async [%t1, %t0] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%x : memref<?xi32>, %ten : i32)
    gpu.wait [%t2]
    gpu.wait [%t2, %t1]
    return
  }

  // A token goes into a function and comes out of it.
  func.func private @step(%x: memref<?xi32>, %t: !gpu.async.token) -> !gpu.async.token {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %next = gpu.launch_func async [%t] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%x : memref<?xi32>, %one : i32)
    return %next : !gpu.async.token
  }
  func.func @calls(%x: memref<?xi32>) {
    %t0 = gpu.wait async
    %t1 = func.call @step(%x, %t0) : (memref<?xi32>, !gpu.async.token) -> !gpu.async.token
    %t2 = func.call @step(%x, %t1) : (memref<?xi32>, !gpu.async.token) -> !gpu.async.token
    gpu.wait [%t2]
    return
  }

  // A token that a function makes, and one that it only hands back.
  func.func private @start(%x: memref<?xi32>) -> !gpu.async.token {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %t = gpu.launch_func async @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%x : memref<?xi32>, %one : i32)
    return %t : !gpu.async.token
  }
  func.func private @same(%t: !gpu.async.token) -> !gpu.async.token {
    return %t : !gpu.async.token
  }
  func.func @made_inside(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %three = arith.constant 3 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %a = func.call @start(%x) : (memref<?xi32>) -> !gpu.async.token
    %b = func.call @same(%a) : (!gpu.async.token) -> !gpu.async.token
    %c = gpu.launch_func async [%b, %a] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%x : memref<?xi32>, %three : i32)
    gpu.wait [%c, %b]
    return
  }

  // Without dependencies.
  func.func @no_dependency(%x: memref<?xi32>, %out: memref<?xi32>) {
    %t = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    gpu.wait [%t]
    return
  }

  // Nothing uses the tokens: the function's return waits, and so does the end of an iteration or a branch.
  func.func @unused(%x: memref<?xi32>, %out: memref<?xi32>) {
    %t = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    return
  }
  func.func @unused_inside(%x: memref<?xi32>, %out: memref<?xi32>, %times: index, %more: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %ten = arith.constant 10 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    scf.for %i = %c0 to %times step %c1 {
      %t = gpu.launch_func async @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%x : memref<?xi32>, %one : i32)
    }
    scf.if %more {
      %t = gpu.launch_func async @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%x : memref<?xi32>, %ten : i32)
    }
    gpu.memcpy %out, %x : memref<?xi32>, memref<?xi32>
    return
  }

  // What loops and branches hand on, and what a function is given.
  func.func @unused_results(%x: memref<?xi32>, %out: memref<?xi32>, %times: index, %more: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %start = gpu.wait async
    %last = scf.for %i = %c0 to %times step %c1 iter_args(%t = %start) -> (!gpu.async.token) {
      %next = gpu.launch_func async [%t] @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%x : memref<?xi32>, %one : i32)
      scf.yield %next : !gpu.async.token
    }
    %either = scf.if %more -> (!gpu.async.token) {
      %t = gpu.launch_func async @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
          args(%out : memref<?xi32>, %one : i32)
      scf.yield %t : !gpu.async.token
    } else {
      %t = gpu.wait async
      scf.yield %t : !gpu.async.token
    }
    return
  }
  func.func @unused_argument(%x: memref<?xi32>, %out: memref<?xi32>) {
    %t = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    func.call @ignores(%t) : (!gpu.async.token) -> ()
    return
  }
  func.func private @ignores(%t: !gpu.async.token) {
    return
  }

  // Some ways to the return wait, others do not.
  func.func @in_one_branch(%x: memref<?xi32>, %out: memref<?xi32>, %wait: i1) {
    %t = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    scf.if %wait {
      gpu.wait [%t]
    }
    return
  }
  func.func @one_of_two(%x: memref<?xi32>, %out: memref<?xi32>, %other: memref<?xi32>, %first: i1) {
    %s = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    %t = gpu.memcpy async %other, %x : memref<?xi32>, memref<?xi32>
    %one = arith.select %first, %s, %t : !gpu.async.token
    gpu.wait [%one]
    return
  }
  func.func @before_a_loop(%x: memref<?xi32>, %out: memref<?xi32>, %times: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.memcpy async %out, %x : memref<?xi32>, memref<?xi32>
    scf.for %i = %c0 to %times step %c1 {
      gpu.wait [%t]
    }
    return
  }

  // The last one alone is waited for; the others are lost with their iteration.
  func.func @each_iteration(%x: memref<?xi32>, %times: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    cf.br ^body(%c0 : index)
  ^body(%i: index):
    %part = memref.subview %x[%i] [1] [1] : memref<?xi32> to memref<1xi32, strided<[1], offset: ?>>
    %whole = memref.cast %part : memref<1xi32, strided<[1], offset: ?>> to memref<?xi32, strided<[1], offset: ?>>
    %start = gpu.wait async
    %t = gpu.memset async [%start] %whole, %one : memref<?xi32, strided<[1], offset: ?>>, i32
    %next = arith.addi %i, %c1 : index
    %more = arith.cmpi slt, %next, %times : index
    cf.cond_br %more, ^body(%next : index), ^end
  ^end:
    gpu.wait [%t]
    return
  }

  // The same operations without tokens.
  func.func @sync(%x: memref<?xi32>, %out: memref<?xi32>, %fill: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %a = gpu.alloc (%n) : memref<?xi32>
    %b = gpu.alloc (%n) : memref<?xi32>
    gpu.memcpy %a, %x : memref<?xi32>, memref<?xi32>
    gpu.memset %b, %fill : memref<?xi32>, i32
    gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%a : memref<?xi32>, %one : i32)
    gpu.launch_func @work::@sum blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%a : memref<?xi32>, %b : memref<?xi32>)
    gpu.memcpy %out, %a : memref<?xi32>, memref<?xi32>
    gpu.dealloc %b : memref<?xi32>
    gpu.dealloc %a : memref<?xi32>
    gpu.wait
    return
  }

  // Memory that the host reads as well.
  func.func @host_shared(%n: index) -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %five = arith.constant 5 : i32
    %zero = arith.constant 0 : i32
    %m = gpu.alloc host_shared (%n) : memref<?xi32>
    scf.for %i = %c0 to %n step %c1 {
      %v = arith.index_cast %i : index to i32
      memref.store %v, %m[%i] : memref<?xi32>
    }
    gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%m : memref<?xi32>, %five : i32)
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> i32 {
      %v = memref.load %m[%i] : memref<?xi32>
      %t = arith.addi %s, %v : i32
      scf.yield %t : i32
    }
    gpu.dealloc %m : memref<?xi32>
    return %sum : i32
  }

  // Memory of the host, registered for the device while it is in use.
  func.func @registered(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %any = memref.cast %x : memref<?xi32> to memref<*xi32>
    gpu.host_register %any : memref<*xi32>
    gpu.launch_func @work::@add blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
        args(%x : memref<?xi32>, %one : i32)
    gpu.host_unregister %any : memref<*xi32>
    return
  }
}
