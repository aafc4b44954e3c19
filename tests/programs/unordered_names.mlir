// Copies behind work with tokens on the same memory, which is reached by another name or in another function.
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
  gpu.func @add_at(%x: !llvm.ptr, %n: i64) kernel {
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %one = arith.constant 1.0 : f32
    scf.for %i = %c0 to %n step %c1 : i64 {
      %at = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %at : !llvm.ptr -> f32
      %w = arith.addf %v, %one : f32
      llvm.store %w, %at : f32, !llvm.ptr
    }
    gpu.return
  }
}

// By functions that get the token.
func.func private @copy_then_wait(%t: !gpu.async.token, %out: memref<?xf32>, %x: memref<?xf32>) attributes {no_inline} {
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%t]
  return
}
func.func @by_whom_gets_the_token(%out: memref<?xf32>, %x: memref<?xf32>, %unused: i1) {
  %c1 = arith.constant 1 : index
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  func.call @copy_then_wait(%k, %out, %x) : (!gpu.async.token, memref<?xf32>, memref<?xf32>) -> ()
  return
}

// Of work that such a function has put behind the token, on one of two ways.
func.func private @add_then_copy(%t: !gpu.async.token, %out: memref<?xf32>, %x: memref<?xf32>, %c: i1)
    attributes {no_inline} {
  %c1 = arith.constant 1 : index
  %r = scf.if %c -> (!gpu.async.token) {
    %k = gpu.launch_func async [%t] @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>)
    scf.yield %k : !gpu.async.token
  } else {
    scf.yield %t : !gpu.async.token
  }
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%r]
  return
}
func.func @on_the_callers_stream(%out: memref<?xf32>, %x: memref<?xf32>, %c: i1) {
  %t = gpu.wait async
  func.call @add_then_copy(%t, %out, %x, %c) : (!gpu.async.token, memref<?xf32>, memref<?xf32>, i1) -> ()
  return
}

// Of work that a callee has put behind the token of its caller's caller.
func.func private @add_behind(%t: !gpu.async.token, %x: memref<?xf32>) attributes {no_inline} {
  %c1 = arith.constant 1 : index
  %k = gpu.launch_func async [%t] @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  return
}
func.func private @call_then_copy(%t: !gpu.async.token, %out: memref<?xf32>, %x: memref<?xf32>) attributes {no_inline} {
  func.call @add_behind(%t, %x) : (!gpu.async.token, memref<?xf32>) -> ()
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%t]
  return
}
func.func @of_a_callees_callee(%out: memref<?xf32>, %x: memref<?xf32>, %unused: i1) {
  %t = gpu.wait async
  func.call @call_then_copy(%t, %out, %x) : (!gpu.async.token, memref<?xf32>, memref<?xf32>) -> ()
  return
}

// Through pointers to functions.
func.func private @copy(%out: memref<?xf32>, %x: memref<?xf32>) attributes {no_inline} {
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  return
}
func.func private @copy_again(%out: memref<?xf32>, %x: memref<?xf32>) attributes {no_inline} {
  func.call @copy(%out, %x) : (memref<?xf32>, memref<?xf32>) -> ()
  return
}
func.func @copied_through_a_pointer(%out: memref<?xf32>, %x: memref<?xf32>, %c: i1) {
  %c1 = arith.constant 1 : index
  %one = func.constant @copy : (memref<?xf32>, memref<?xf32>) -> ()
  %other = func.constant @copy_again : (memref<?xf32>, memref<?xf32>) -> ()
  %chosen = arith.select %c, %one, %other : (memref<?xf32>, memref<?xf32>) -> ()
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  func.call_indirect %chosen(%out, %x) : (memref<?xf32>, memref<?xf32>) -> ()
  gpu.wait [%k]
  return
}
func.func private @add_behind_again(%t: !gpu.async.token, %x: memref<?xf32>) attributes {no_inline} {
  func.call @add_behind(%t, %x) : (!gpu.async.token, memref<?xf32>) -> ()
  return
}
func.func @added_through_a_pointer(%out: memref<?xf32>, %x: memref<?xf32>, %c: i1) {
  %t = gpu.wait async
  %one = func.constant @add_behind : (!gpu.async.token, memref<?xf32>) -> ()
  %other = func.constant @add_behind_again : (!gpu.async.token, memref<?xf32>) -> ()
  %chosen = arith.select %c, %one, %other : (!gpu.async.token, memref<?xf32>) -> ()
  func.call_indirect %chosen(%t, %x) : (!gpu.async.token, memref<?xf32>) -> ()
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%t]
  return
}

// Of memory that a kernel gets as an address, or that was itself in memory.
func.func @by_its_address(%out: memref<?xf32>, %x: memref<?xf32>, %unused: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %count = arith.index_cast %n : index to i64
  %address = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
  %word = arith.index_cast %address : index to i64
  %pointer = llvm.inttoptr %word : i64 to !llvm.ptr
  %k = gpu.launch_func async @m::@add_at blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%pointer : !llvm.ptr, %count : i64)
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%k]
  return
}
func.func @out_of_a_box(%out: memref<?xf32>, %x: memref<?xf32>, %unused: i1) {
  %c1 = arith.constant 1 : index
  %box = memref.alloca() : memref<memref<?xf32>>
  memref.store %x, %box[] : memref<memref<?xf32>>
  %y = memref.load %box[] : memref<memref<?xf32>>
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%y : memref<?xf32>)
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  gpu.wait [%k]
  return
}

// Of one array that is two arguments.
func.func @twice_the_same(%out: memref<?xf32>, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  gpu.memcpy %out, %y : memref<?xf32>, memref<?xf32>
  gpu.wait [%k]
  return
}

// Of a global, which each use gets anew.
memref.global "private" @g : memref<100xf32> = dense<4.0>
func.func private @copy_of_the_global(%out: memref<?xf32>) attributes {no_inline} {
  %g = memref.get_global @g : memref<100xf32>
  %x = memref.cast %g : memref<100xf32> to memref<?xf32>
  gpu.memcpy %out, %x : memref<?xf32>, memref<?xf32>
  return
}
func.func @of_a_global(%out: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %g = memref.get_global @g : memref<100xf32>
  %x = memref.cast %g : memref<100xf32> to memref<?xf32>
  %k = gpu.launch_func async @m::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  func.call @copy_of_the_global(%out) : (memref<?xf32>) -> ()
  gpu.wait [%k]
  return
}

// Of what a product of matrices writes.
func.func @of_a_product(%out: memref<?xf64>, %v: memref<?xf64>, %pos: memref<?xindex>, %col: memref<?xindex>,
                        %x: memref<?xf64>, %y: memref<?xf64>, %room: memref<?xi8>, %n: index) {
  %t0 = gpu.wait async
  %dx, %t1 = gpu.create_dn_tensor async [%t0] %x, %n : index into memref<?xf64>
  %dy, %t2 = gpu.create_dn_tensor async [%t1] %y, %n : index into memref<?xf64>
  %a, %t3 = gpu.create_csr async [%t2] %n, %n, %n, %pos, %col, %v : memref<?xindex>, memref<?xindex>, memref<?xf64>
  gpu.wait [%t3]
  %t4 = gpu.wait async
  %t5 = gpu.spmv async [%t4] %a, %dx, %dy, %room : memref<?xi8> into f64
  gpu.memcpy %out, %y : memref<?xf64>, memref<?xf64>
  %t6 = gpu.destroy_sp_mat async [%t5] %a
  %t7 = gpu.destroy_dn_tensor async [%t6] %dx
  %t8 = gpu.destroy_dn_tensor async [%t7] %dy
  gpu.wait [%t8]
  return
}
}
