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
