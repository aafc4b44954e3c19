// Sizes that threads alone know, or functions that they call, are compared by the threads.

// What a function asks for that threads call.
func.func private @add(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}
func.func @called(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @add(%x, %y) : (memref<?xf32>, memref<?xf32>) -> ()
  }
  return
}

func.func @called_forall(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    func.call @add(%x, %y) : (memref<?xf32>, memref<?xf32>) -> ()
  }
  return
}

func.func @called_launch(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    func.call @add(%x, %y) : (memref<?xf32>, memref<?xf32>) -> ()
    gpu.terminator
  }
  return
}

// Its loops are the calling thread's.
func.func private @inner(%x: memref<?xf32>, %y: memref<?xf32>, %k: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%k) {
    %v = memref.subview %y[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    %w = memref.subview %x[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    linalg.exp ins(%w : memref<1xf32, strided<[1], offset: ?>>) outs(%v : memref<1xf32, strided<[1], offset: ?>>)
  }
  return
}
func.func private @mid(%x: memref<?xf32>, %y: memref<?xf32>, %k: index) {
  func.call @inner(%x, %y, %k) : (memref<?xf32>, memref<?xf32>, index) -> ()
  return
}
func.func @calls_calls(%a: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %m = memref.dim %a, %c1 : memref<?x?xf32>
  %l = memref.dim %y, %c1 : memref<?x?xf32>
  %p = memref.alloc(%m) : memref<?xf32>
  %q = memref.alloc(%l) : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @mid(%p, %q, %c1) : (memref<?xf32>, memref<?xf32>, index) -> ()
  }
  memref.dealloc %p : memref<?xf32>
  memref.dealloc %q : memref<?xf32>
  return
}

// A function of tensors becomes a part of the loop, in front of which its sizes can be told.
func.func private @add_rows(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @called_of_tensors(%a: tensor<?x?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %row = tensor.extract_slice %a[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %s = func.call @add_rows(%b, %row) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

// Places that threads read.
func.func @places(%a: tensor<?xf32>, %at: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %at, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x4xf32> {
    %p = tensor.extract %at[%i] : tensor<?xi64>
    %k = arith.index_cast %p : i64 to index
    %row = tensor.extract_slice %a[%k] [4] [1] : tensor<?xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    }
  }
  return %r : tensor<?x4xf32>
}

func.func @places_of_views(%a: memref<?xf32>, %at: memref<?xindex>, %y: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %at, %c0 : memref<?xindex>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %k = memref.load %at[%i] : memref<?xindex>
    %row = memref.subview %a[%k] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.exp ins(%row : memref<4xf32, strided<[1], offset: ?>>) outs(%out : memref<4xf32, strided<[1], offset: ?>>)
  }
  return
}

func.func @affine_places(%a: memref<?xf32>, %at: memref<?xindex>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %at, %c0 : memref<?xindex>
  affine.parallel (%i) = (0) to (symbol(%n)) {
    %k = affine.load %at[%i] : memref<?xindex>
    %x = memref.subview %a[%k] [2] [1] : memref<?xf32> to memref<2xf32, strided<[1], offset: ?>>
    %z = memref.subview %y[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    %v = memref.load %x[%c0] : memref<2xf32, strided<[1], offset: ?>>
    memref.store %v, %z[%c0] : memref<1xf32, strided<[1], offset: ?>>
  }
  return
}

func.func @summed_places(%a: memref<?xf32>, %at: memref<?xindex>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %n = memref.dim %at, %c0 : memref<?xindex>
  %s = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
    %k = memref.load %at[%i] : memref<?xindex>
    %x = memref.subview %a[%k] [2] [1] : memref<?xf32> to memref<2xf32, strided<[1], offset: ?>>
    %v = memref.load %x[%c1] : memref<2xf32, strided<[1], offset: ?>>
    scf.reduce(%v : f32) {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      scf.reduce.return %t : f32
    }
  }
  return %s : f32
}

// A branch that some threads take.
func.func @branch(%a: tensor<?xf32>, %e: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %c = arith.cmpi sge, %i, %c1 : index
    %at = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %w = scf.if %c -> tensor<4xf32> {
      %row = tensor.extract_slice %a[%at] [4] [1] : tensor<?xf32> to tensor<4xf32>
      scf.yield %row : tensor<4xf32>
    } else {
      %row = tensor.extract_slice %e[%at] [4] [1] : tensor<?xf32> to tensor<4xf32>
      scf.yield %row : tensor<4xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %w into %o[%at] [4] [1] : tensor<4xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Steps as many as each thread finds.
func.func @until(%a: tensor<?x?xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %s:2 = scf.while (%k = %c0, %acc = %z) : (index, f32) -> (index, f32) {
      %row = tensor.extract_slice %a[%i, %k] [1, 1] [1, 1] : tensor<?x?xf32> to tensor<1xf32>
      %v = tensor.extract %row[%c0] : tensor<1xf32>
      %p = arith.cmpf oge, %v, %z : f32
      %q = arith.addf %acc, %v : f32
      scf.condition(%p) %k, %q : index, f32
    } do {
    ^bb0(%k: index, %acc: f32):
      %l = arith.addi %k, %c1 : index
      scf.yield %l, %acc : index, f32
    }
    %v = tensor.from_elements %s#1 : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Arithmetic of another dialect, and steps that only the call knows, can be told in front of the loop.
func.func @multiplied(%a: tensor<?xf32>, %e: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c4 = index.constant 4
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %at = index.mul %i, %c4
    %row = tensor.extract_slice %a[%at] [4] [1] : tensor<?xf32> to tensor<4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%at] [4] [1] : tensor<4xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

func.func @divided(%a: tensor<?xf32>, %e: tensor<?xf32>, %k: index) -> tensor<?xf32> {
  %c0 = index.constant 0
  %n = tensor.dim %e, %c0 : tensor<?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %at = index.ceildivu %i, %k
    %v = tensor.extract_slice %a[%at] [1] [1] : tensor<?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

func.func @digits(%a: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?xf32> {
  %t = arith.muli %n, %m : index
  %e = tensor.empty(%t) : tensor<?xf32>
  %r = scf.forall (%i) in (%t) shared_outs(%o = %e) -> tensor<?xf32> {
    %at:2 = affine.delinearize_index %i into (%n, %m) : index, index
    %row = tensor.extract_slice %a[%at#0, %at#1] [1, 1] [1, 1] : tensor<?x?xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

func.func @stepped(%a: tensor<?xf32>, %e: tensor<?xf32>, %n: index, %t: index) -> tensor<?xf32> {
  %r = scf.forall (%i) = (0) to (%n) step (%t) shared_outs(%o = %e) -> tensor<?xf32> {
    %row = tensor.extract_slice %a[%i] [%t] [1] : tensor<?xf32> to tensor<?xf32>
    %out = tensor.extract_slice %o[%i] [%t] [1] : tensor<?xf32> to tensor<?xf32>
    %s = linalg.exp ins(%row : tensor<?xf32>) outs(%out : tensor<?xf32>) -> tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i] [%t] [1] : tensor<?xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

func.func @inner_steps(%a: memref<?xf32>, %y: memref<?xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %n step %t {
      %x = memref.subview %a[%j] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      %z = memref.subview %y[%i] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
      linalg.add ins(%x, %z : memref<1xf32, strided<[1], offset: ?>>, memref<1xf32, strided<[1], offset: ?>>) outs(%z : memref<1xf32, strided<[1], offset: ?>>)
    }
  }
  return
}

// What is inserted or copied as a whole.
func.func @inserted(%a: tensor<?x?xf32>, %e: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %c1 = arith.constant 1 : index
  %w = tensor.dim %a, %c1 : tensor<?x?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x?xf32> {
    %x = tensor.extract_slice %a[%i, 0] [1, %w] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}

func.func @copied(%a: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.copy %a, %y : memref<?xf32> to memref<?xf32>
  }
  return
}

// Parts that need not be there where no thread looks at a view of them.
func.func @views_in_branches(%a: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  %m = memref.dim %a, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %at = arith.muli %i, %c4 : index
    %end = arith.addi %at, %c4 : index
    %fits = arith.cmpi ule, %end, %m : index
    %x = memref.subview %a[%at] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: ?>>
    %square = memref.expand_shape %x [[0, 1]] output_shape [2, 2] : memref<4xf32, strided<[1], offset: ?>> into memref<2x2xf32, strided<[2, 1], offset: ?>>
    %row = memref.subview %square[1, 0] [1, 2] [1, 1] : memref<2x2xf32, strided<[2, 1], offset: ?>> to memref<2xf32, strided<[1], offset: ?>>
    scf.if %fits {
      %v = memref.load %row[%c1] : memref<2xf32, strided<[1], offset: ?>>
      memref.store %v, %y[%i] : memref<?xf32>
    }
  }
  return
}

func.func @tensors_in_branches(%a: tensor<?xf32>, %y: tensor<?xf32>, %fits: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %y) -> tensor<?xf32> {
    %at = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    %x = tensor.extract_slice %a[%at] [4] [1] : tensor<?xf32> to tensor<4xf32>
    %square = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
    %old = tensor.extract_slice %o[%i] [1] [1] : tensor<?xf32> to tensor<1xf32>
    %c = arith.cmpi ult, %i, %fits : index
    %new = scf.if %c -> tensor<1xf32> {
      %v = tensor.extract %square[%c1, %c1] : tensor<2x2xf32>
      %w = tensor.from_elements %v : tensor<1xf32>
      scf.yield %w : tensor<1xf32>
    } else {
      scf.yield %old : tensor<1xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %new into %o[%i] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// What is known to fit, by sizes that types say, and in functions that threads call.
func.func @fits_in_branch(%a: tensor<16x8xf32>, %y: tensor<16xf32>, %c: i1) -> tensor<16xf32> {
  %r = scf.forall (%i) in (16) shared_outs(%o = %y) -> tensor<16xf32> {
    %old = tensor.extract_slice %o[%i] [1] [1] : tensor<16xf32> to tensor<1xf32>
    %new = scf.if %c -> tensor<1xf32> {
      %x = tensor.extract_slice %a[%i, 3] [1, 1] [1, 1] : tensor<16x8xf32> to tensor<1xf32>
      scf.yield %x : tensor<1xf32>
    } else {
      scf.yield %old : tensor<1xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %new into %o[%i] [1] [1] : tensor<1xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

func.func private @doubled_tiles(%a: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %m = memref.dim %a, %c0 : memref<?xf32>
  scf.for %i = %c0 to %m step %c4 {
    %s = affine.min affine_map<(d0)[s0] -> (4, s0 - d0)>(%i)[%m]
    %x = memref.subview %a[%i] [%s] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.add ins(%x, %x : memref<?xf32, strided<[1], offset: ?>>, memref<?xf32, strided<[1], offset: ?>>) outs(%x : memref<?xf32, strided<[1], offset: ?>>)
  }
  return
}
func.func @fits_in_function(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @doubled_tiles(%a) : (memref<?xf32>) -> ()
  }
  return
}

func.func @affine_steps(%a: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %m = memref.dim %a, %c1 : memref<?x?xf32>
  affine.parallel (%i) = (0) to (symbol(%n)) {
    affine.for %j = 1 to %m {
      %x = memref.subview %a[%i, %j] [1, 1] [1, 1] : memref<?x?xf32> to memref<f32, strided<[], offset: ?>>
      %z = memref.subview %y[%i, %j] [1, 1] [1, 1] : memref<?x?xf32> to memref<f32, strided<[], offset: ?>>
      %v = memref.load %x[] : memref<f32, strided<[], offset: ?>>
      memref.store %v, %z[] : memref<f32, strided<[], offset: ?>>
    }
  }
  return
}

// Loops of a thread that are as long as it finds, and of functions that threads call.
func.func @found_steps(%a: memref<?x?xf32>, %from: memref<?xindex>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %from, %c0 : memref<?xindex>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %k = memref.load %from[%i] : memref<?xindex>
    %end = arith.addi %k, %k : index
    scf.for %j = %k to %end step %c1 {
      %x = memref.subview %a[%i, %j] [1, 1] [1, 1] : memref<?x?xf32> to memref<f32, strided<[], offset: ?>>
      %v = memref.load %x[] : memref<f32, strided<[], offset: ?>>
      %z = memref.load %y[%i] : memref<?xf32>
      %s = arith.addf %z, %v : f32
      memref.store %s, %y[%i] : memref<?xf32>
    }
  }
  return
}

func.func private @summed_steps(%a: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    %x = memref.subview %a[%j] [1] [1] : memref<?xf32> to memref<f32, strided<[], offset: ?>>
    %v = memref.load %x[] : memref<f32, strided<[], offset: ?>>
    %z = memref.load %y[%c0] : memref<?xf32>
    %s = arith.addf %z, %v : f32
    memref.store %s, %y[%c0] : memref<?xf32>
  }
  return
}
func.func @calls_steps(%a: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    func.call @summed_steps(%a, %y, %n) : (memref<?xf32>, memref<?xf32>, index) -> ()
  }
  return
}
