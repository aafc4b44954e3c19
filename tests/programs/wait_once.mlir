// Functions of several kernels without tokens: where they wait. The order of the kernels shows in the numbers.
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
    gpu.func @times(%x: memref<?xi32>, %v: i32) kernel {
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
        %r = arith.muli %o, %v : i32
        memref.store %r, %x[%i] : memref<?xi32>
      }
      gpu.return
    }
    gpu.func @copy(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
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
        memref.store %o, %y[%i] : memref<?xi32>
      }
      gpu.return
    }
  }

  // As ever: the launch waits.
  func.func @one(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // The second waits for both.
  func.func @two(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // Whichever way is taken, the last one waits.
  func.func @either(%x: memref<?xi32>, %first: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    scf.if %first {
      gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v3 : i32)
    } else {
      gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v5 : i32)
    }
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v5 : i32)
    return
  }

  // One way has a launch more: what may be left is waited for where the ways meet.
  func.func @perhaps(%x: memref<?xi32>, %more: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    scf.if %more {
      gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v3 : i32)
    }
    return
  }

  // Waits once, behind the loop.
  func.func @loop(%x: memref<?xi32>, %times: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    scf.for %i = %c0 to %times step %c1 {
      gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v3 : i32)
      gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v3 : i32)
    }
    return
  }

  // The host looks in each iteration.
  func.func @looking_loop(%x: memref<?xi32>, %below: i32) -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %s = gpu.alloc host_shared (%c1) : memref<?xi32>
    memref.store %v3, %s[%c0] : memref<?xi32>
    %last = scf.while (%seen = %v3) : (i32) -> i32 {
      %goes_on = arith.cmpi slt, %seen, %below : i32
      scf.condition(%goes_on) %seen : i32
    } do {
    ^bb0(%seen: i32):
      gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%s : memref<?xi32>, %v3 : i32)
      gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%s : memref<?xi32>, %v3 : i32)
      gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
          args(%x : memref<?xi32>, %v3 : i32)
      %next = memref.load %s[%c0] : memref<?xi32>
      scf.yield %next : i32
    }
    gpu.dealloc %s : memref<?xi32>
    return %last : i32
  }

  // A load sees what both kernels wrote, and comes before the third.
  func.func @load(%x: memref<?xi32>) -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %s = gpu.alloc host_shared (%c1) : memref<?xi32>
    memref.store %v5, %s[%c0] : memref<?xi32>
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%s : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%s : memref<?xi32>, %v3 : i32)
    %seen = memref.load %s[%c0] : memref<?xi32>
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%s : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.dealloc %s : memref<?xi32>
    return %seen : i32
  }

  // A store comes behind the kernel that reads.
  func.func @store(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %s = gpu.alloc host_shared (%n) : memref<?xi32>
    memref.store %v5, %s[%c0] : memref<?xi32>
    gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%s : memref<?xi32>, %x : memref<?xi32>)
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    memref.store %v3, %s[%c0] : memref<?xi32>
    gpu.dealloc %s : memref<?xi32>
    return
  }

  // Copies and fills wait as they did.
  func.func @transfers(%x: memref<?xi32>, %y: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.memcpy %y, %x : memref<?xi32>, memref<?xi32>
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.memset %x, %v5 : memref<?xi32>, i32
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // Memory comes and goes in the order of the kernels, which one wait ends.
  func.func @memory(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    %d = gpu.alloc (%n) : memref<?xi32>
    gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %d : memref<?xi32>)
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%d : memref<?xi32>, %v3 : i32)
    %e = gpu.alloc (%n) : memref<?xi32>
    gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%d : memref<?xi32>, %e : memref<?xi32>)
    gpu.dealloc %d : memref<?xi32>
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%e : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%e : memref<?xi32>, %x : memref<?xi32>)
    gpu.dealloc %e : memref<?xi32>
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // Memory alone, on one of the ways: what comes first and what comes last wait as well.
  func.func @temporary(%x: memref<?xi32>, %used: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %d = gpu.alloc (%n) : memref<?xi32>
    scf.if %used {
      gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %d : memref<?xi32>)
      gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%d : memref<?xi32>, %v3 : i32)
      gpu.launch_func @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%d : memref<?xi32>, %x : memref<?xi32>)
    }
    gpu.dealloc %d : memref<?xi32>
    return
  }

  // A function has waited when it returns, and is called with nothing left to wait for.
  func.func @calls(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    func.call @two(%x) : (memref<?xi32>) -> ()
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // Work with a token may be on another stream.
  func.func @tokens(%x: memref<?xi32>, %y: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    %t = gpu.launch_func async @work::@copy blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %y : memref<?xi32>)
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<?xi32>, %v3 : i32)
    gpu.wait [%t]
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y : memref<?xi32>, %v3 : i32)
    return
  }

  // One way returns early.
  func.func @early(%x: memref<?xi32>, %ends: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    cf.cond_br %ends, ^end, ^more
  ^end:
    return
  ^more:
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // An assertion does not wait; where it fails, the runtime does.
  func.func @checked(%x: memref<?xi32>, %right: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    cf.assert %right, "it is right"
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }

  // The kernels are on two devices.
  func.func @on_device(%x: memref<?xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v3 = arith.constant 3 : i32
    %v5 = arith.constant 5 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %blocks = arith.ceildivui %n, %c64 : index
    %first = arith.constant 0 : i32
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.set_default_device %first
    gpu.launch_func @work::@add blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    gpu.launch_func @work::@times blocks in (%blocks, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?xi32>, %v3 : i32)
    return
  }
}
