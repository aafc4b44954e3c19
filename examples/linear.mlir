// out = max(x @ w + bias, 0), from linalg on memrefs: nothing here speaks of a GPU.
#rows_cols = affine_map<(i, j) -> (i, j)>
#cols = affine_map<(i, j) -> (j)>
func.func @linear_relu(%x: memref<?x?xf32>, %w: memref<?x?xf32>, %bias: memref<?xf32>, %out: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<?x?xf32>)
  linalg.matmul ins(%x, %w : memref<?x?xf32>, memref<?x?xf32>) outs(%out : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#cols, #rows_cols], iterator_types = ["parallel", "parallel"]}
      ins(%bias : memref<?xf32>) outs(%out : memref<?x?xf32>) {
  ^bb0(%b: f32, %acc: f32):
    %sum = arith.addf %acc, %b : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  }
  return
}
