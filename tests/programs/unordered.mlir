// Uses of memory behind work with tokens that stands in a loop, on one of two ways, or in a caller.
module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @add(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %x[%i] : memref<?xf32>
    }
    gpu.return
  }
  gpu.func @both(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %x[%i] : memref<?xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %x[%i] : memref<?xf32>
      memref.store %w, %out[%i] : memref<?xf32>
    }
    gpu.return
  }
}
// What a loop has put on a stream is done before the free of what it uses.
func.func @freed_after_a_loop(%out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : memref<?xf32>
  %x = gpu.alloc (%n) : memref<?xf32>
  gpu.memset %x, %zero : memref<?xf32>, f32
  %t0 = gpu.wait async
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %t0) -> (!gpu.async.token) {
    %k = gpu.launch_func async [%t] @m::@both blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>, %out : memref<?xf32>)
    scf.yield %k : !gpu.async.token
  }
  gpu.dealloc %x : memref<?xf32>
  gpu.wait [%r]
  return
}
// The free of stack memory that kernels use is nobody's operation.
func.func @on_the_stack(%out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %memory = memref.alloca() : memref<64xf32>
  %x = memref.cast %memory : memref<64xf32> to memref<?xf32>
  gpu.memset %x, %zero : memref<?xf32>, f32
  %t0 = gpu.wait async
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %t0) -> (!gpu.async.token) {
    %k = gpu.launch_func async [%t] @m::@both blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>, %out : memref<?xf32>)
    scf.yield %k : !gpu.async.token
  }
  return
}
func.func @copied_after_a_branch(%out: memref<?xf32>, %x: memref<?xf32>, %c: i1) {
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %r = scf.if %c -> (!gpu.async.token) {
    %k = gpu.launch_func async [%t0] @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>)
    scf.yield %k : !gpu.async.token
  } else {
    scf.yield %t0 : !gpu.async.token
  }
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%r]
  return
}
// Each turn copies what the last one has left.
func.func @copied_in_a_loop(%out: memref<?xf32>, %x: memref<?xf32>, %turns: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %r = scf.for %i = %c0 to %turns step %c1 iter_args(%t = %t0) -> (!gpu.async.token) {
    gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
    %k = gpu.launch_func async [%t] @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>)
    scf.yield %k : !gpu.async.token
  }
  gpu.wait [%r]
  return
}
func.func private @copy(%to: memref<?xf32>, %from: memref<?xf32>) attributes {no_inline} {
  gpu.memcpy %to, %from : memref<?xf32>, memref<?xf32>
  return
}
func.func @copied_by_a_callee(%out: memref<?xf32>, %x: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  func.call @copy(%out, %x) : (memref<?xf32>, memref<?xf32>) -> ()
  gpu.wait [%k]
  return
}
func.func private @maybe(%t: !gpu.async.token, %x: memref<?xf32>, %wait: i1) attributes {no_inline} {
  %c1 = arith.constant 1 : index
  %k = gpu.launch_func async [%t] @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  scf.if %wait {
    gpu.wait [%k]
  }
  return
}
// Nobody but the caller can wait for what the callee has put behind the caller's token.
func.func @put_behind_a_token(%x: memref<?xf32>, %wait: i1) {
  %t = gpu.wait async
  func.call @maybe(%t, %x, %wait) : (!gpu.async.token, memref<?xf32>, i1) -> ()
  return
}
}
