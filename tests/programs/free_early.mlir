// Memory that goes back behind its last use: for golden/free_early.kernels.check and test_free_early.py.
// Three steps, of which the first is used again by the last.
func.func @chain(%x: tensor<?x16xf32>, %w: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  %2 = linalg.matmul ins(%1, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  %3 = linalg.matmul ins(%2, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  %4 = arith.addf %3, %1 : tensor<?x16xf32>
  %5 = linalg.matmul ins(%4, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %5 : tensor<?x16xf32>
}

// The last use of what a view shows is that of the view, in a loop, too.
func.func @views(%x: tensor<64xf32>, %steps: index) -> (f32, tensor<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %doubled = arith.addf %x, %x : tensor<64xf32>
  %part = tensor.extract_slice %doubled[16] [32] [1] : tensor<64xf32> to tensor<32xf32>
  %other = arith.mulf %x, %x : tensor<64xf32>
  %head = tensor.extract_slice %other[0] [32] [1] : tensor<64xf32> to tensor<32xf32>
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%sofar = %head) -> (tensor<32xf32>) {
    %more = arith.addf %sofar, %part : tensor<32xf32>
    scf.yield %more : tensor<32xf32>
  }
  %element = tensor.extract %part[%c5] : tensor<32xf32>
  return %element, %sum : f32, tensor<32xf32>
}

// Numbers that a function makes of memory are no views of it.
func.func private @first(%t: tensor<64xf32>) -> f32 {
  %c1 = arith.constant 1 : index
  %u = arith.mulf %t, %t : tensor<64xf32>
  %r = tensor.extract %u[%c1] : tensor<64xf32>
  return %r : f32
}
func.func @numbers(%x: tensor<64xf32>, %steps: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %steps step %c1 iter_args(%sofar = %zero) -> (f32) {
    %s = tensor.splat %sofar : tensor<64xf32>
    %m = arith.addf %s, %x : tensor<64xf32>
    %q = func.call @first(%m) : (tensor<64xf32>) -> f32
    scf.yield %q : f32
  }
  %t = tensor.splat %sum : tensor<64xf32>
  %last = func.call @first(%t) : (tensor<64xf32>) -> f32
  return %last : f32
}

// What sees the memory in another way is read behind the next tensor.
func.func @turned(%x: tensor<8x4xf32>, %out: memref<4x8xf32>) -> tensor<8x4xf32> {
  %doubled = arith.addf %x, %x : tensor<8x4xf32>
  %memory = bufferization.to_buffer %doubled : tensor<8x4xf32> to memref<8x4xf32>
  %across = memref.transpose %memory (i, j) -> (j, i) : memref<8x4xf32> to memref<4x8xf32, strided<[1, 4]>>
  %other = arith.mulf %x, %x : tensor<8x4xf32>
  linalg.copy ins(%across : memref<4x8xf32, strided<[1, 4]>>) outs(%out : memref<4x8xf32>)
  return %other : tensor<8x4xf32>
}
func.func @apart(%x: tensor<8x4xf32>, %out: memref<8x4xf32>) -> tensor<8x4xf32> {
  %doubled = arith.addf %x, %x : tensor<8x4xf32>
  %memory = bufferization.to_buffer %doubled : tensor<8x4xf32> to memref<8x4xf32>
  %one, %two = memref.distinct_objects %memory, %out : memref<8x4xf32>, memref<8x4xf32>
  %other = arith.mulf %x, %x : tensor<8x4xf32>
  linalg.copy ins(%one : memref<8x4xf32>) outs(%two : memref<8x4xf32>)
  return %other : tensor<8x4xf32>
}
func.func @part(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<32xf32>) {
  %doubled = arith.addf %x, %x : tensor<64xf32>
  %part = tensor.extract_slice %doubled[16] [32] [1] : tensor<64xf32> to tensor<32xf32>
  %squares = arith.mulf %x, %x : tensor<64xf32>
  %more = arith.addf %part, %part : tensor<32xf32>
  %last = arith.addf %squares, %squares : tensor<64xf32>
  return %last, %more : tensor<64xf32>, tensor<32xf32>
}
