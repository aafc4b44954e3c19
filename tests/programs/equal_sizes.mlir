// Sizes that calls have to agree on: for golden/equal_sizes.kernels.check.
#row = affine_map<(i, k) -> (i)>
#column = affine_map<(i, k) -> (k)>
#all = affine_map<(i, k) -> (i, k)>

func.func @add(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
  linalg.add ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%z : memref<?xf32>)
  return
}

// Through what has the sizes of an argument; a number that the loops have elsewhere.
func.func @scaled(%x: tensor<?x?xf32>, %scale: tensor<?xf32>, %bias: tensor<8xf32>, %other: tensor<?xf32>)
    -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %doubled = arith.addf %x, %x : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%doubled, %scale, %bias : tensor<?x?xf32>, tensor<?xf32>, tensor<8xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%v: f32, %s: f32, %b: f32, %o: f32):
    %scaled = arith.mulf %v, %s : f32
    %sum = arith.addf %scaled, %b : f32
    linalg.yield %sum : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @product(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x4xf64>) {
  %b4 = memref.cast %b : memref<?x?xf64> to memref<?x4xf64>
  linalg.matmul ins(%a, %b4 : memref<?x?xf64>, memref<?x4xf64>) outs(%c : memref<?x4xf64>)
  return
}

// What may not run asks for nothing. An array that may be left out has to fit like any other.
func.func @maybe(%n: i1, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32> {offload.optional}) {
  scf.if %n {
    linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  }
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%z : memref<?xf32>)
  return
}
