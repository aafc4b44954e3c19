// Sizes that no signature can compare: for golden/asserted_sizes.kernels.check and test_asserted_sizes.py.

// A part, whose size is computed, and an argument.
func.func @half(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %h = arith.divui %n, %c2 : index
  %front = tensor.extract_slice %a[0] [%h] [1] : tensor<?xf32> to tensor<?xf32>
  %e = tensor.empty(%h) : tensor<?xf32>
  %r = linalg.add ins(%front, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// What is there is known to be the same: nothing is compared.
func.func @same(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.exp ins(%p : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// What may not run asks for nothing where it does not run.
func.func @maybe(%yes: i1, %x: memref<?xf32>, %y: memref<?xf32>) {
  scf.if %yes {
    linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  }
  return
}

// Arguments of a function that Python does not call.
func.func private @sum(%x: memref<?xf64>, %y: memref<4xf64>) {
  linalg.add ins(%x, %y : memref<?xf64>, memref<4xf64>) outs(%y : memref<4xf64>)
  return
}
func.func @through(%x: memref<?xf64>, %y: memref<4xf64>) {
  func.call @sum(%x, %y) : (memref<?xf64>, memref<4xf64>) -> ()
  return
}

// Those of one that Python may call as well: the program's own calls are not looked at elsewhere.
func.func @doubled(%x: memref<?xf64>, %y: memref<?xf64>) {
  linalg.add ins(%x, %x : memref<?xf64>, memref<?xf64>) outs(%y : memref<?xf64>)
  return
}
func.func @through_public(%x: memref<?xf64>, %y: memref<?xf64>) {
  func.call @doubled(%x, %y) : (memref<?xf64>, memref<?xf64>) -> ()
  return
}

// One of two tensors as a whole, of whatever size.
func.func @either(%x: tensor<?xf32>, %n: index, %all: i1) -> tensor<?xf32> {
  %front = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  %r = arith.select %all, %x, %front : tensor<?xf32>
  return %r : tensor<?xf32>
}

// What is not used, or used where nothing runs, asks for nothing; nor do threads.
func.func @unused(%x: tensor<?xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %p = tensor.extract_slice %x[0] [4] [1] : tensor<?xf32> to tensor<4xf32>
  %nobody = tensor.extract_slice %x[100] [4] [1] : tensor<?xf32> to tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> tensor<4xf32> {
    %s = arith.addf %sum, %p : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @generated(%x: tensor<?x8xf32>, %n: index) -> tensor<?xf32> {
  %c1 = arith.constant 1 : index
  %g = tensor.generate %n {
  ^bb0(%i: index):
    %row = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
    %e = tensor.extract %row[%c1] : tensor<8xf32>
    tensor.yield %e : f32
  } : tensor<?xf32>
  return %g : tensor<?xf32>
}

// A copy has the sizes of what it copies.
func.func @copied(%x: tensor<?x?xf32>, %hint: index) -> tensor<?x?xf32> {
  %e = bufferization.alloc_tensor() copy(%x) size_hint=%hint : tensor<?x?xf32>
  %r = linalg.exp ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Windows reach beyond the steps of their loops; the last one runs backwards.
func.func @windows(%x: memref<?x?xf32>, %k: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.conv_2d ins(%x, %k : memref<?x?xf32>, memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
func.func @backwards(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (7 - i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Parts that callers choose.
func.func @part(%x: tensor<?xf32>, %from: index, %n: index) -> tensor<?xf32> {
  %p = tensor.extract_slice %x[%from] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}
func.func @placed(%x: tensor<?xf32>, %p: tensor<2xf32>, %to: index) -> tensor<?xf32> {
  %r = tensor.insert_slice %p into %x[%to] [2] [1] : tensor<2xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @every(%x: memref<10xf32>, %from: index, %n: index, %step: index) {
  %one = arith.constant 1.0 : f32
  %v = memref.subview %x[%from] [%n] [%step] : memref<10xf32> to memref<?xf32, strided<[?], offset: ?>>
  linalg.fill ins(%one : f32) outs(%v : memref<?xf32, strided<[?], offset: ?>>)
  return
}

// An author's own words come first.
func.func @own(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?xf32>
  %fits = arith.cmpi eq, %m, %n : index
  cf.assert %fits, "n is the length of a"
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Not in a loop whose steps are threads but in front of it, nor in what they call.
func.func @rows(%x: memref<8x?xf32>, %y: memref<8x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c1 : memref<8x?xf32>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %from = memref.subview %x[%i, 0] [1, %n] [1, 1] : memref<8x?xf32> to memref<?xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%i, 0] [1, %n] [1, 1] : memref<8x?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.exp ins(%from : memref<?xf32, strided<[1], offset: ?>>) outs(%to : memref<?xf32, strided<[1], offset: ?>>)
  }
  return
}

// A chain of them is one kernel: the comparisons are in front of it.
func.func @chain(%a: tensor<?xf32>, %b: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %s = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %t = linalg.exp ins(%s : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.sub ins(%t, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
