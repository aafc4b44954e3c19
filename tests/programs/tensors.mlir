// A layer of a network, as compilers that work on tensors write it: what a function takes stays as it is.
func.func @layer(%x: tensor<?x?xf32>, %weights: tensor<?x?xf32>, %bias: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %weights, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %product = linalg.matmul ins(%x, %weights : tensor<?x?xf32>, tensor<?x?xf32>)
                           outs(%zeros : tensor<?x?xf32>) -> tensor<?x?xf32>
  %wide = linalg.broadcast ins(%bias : tensor<?xf32>) outs(%empty : tensor<?x?xf32>) dimensions = [0]
  %sum = arith.addf %product, %wide : tensor<?x?xf32>
  %zero_everywhere = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %result = arith.maximumf %sum, %zero_everywhere : tensor<?x?xf32>
  return %result : tensor<?x?xf32>
}

// The loop's first value is the caller's, the others are not: the loop begins with a copy.
func.func @doubled(%x: tensor<?xf32>, %times: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %result = scf.for %i = %c0 to %times step %c1 iter_args(%value = %x) -> tensor<?xf32> {
    %next = arith.addf %value, %value : tensor<?xf32>
    scf.yield %next : tensor<?xf32>
  }
  return %result : tensor<?xf32>
}
