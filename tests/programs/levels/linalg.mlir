// linalg on memrefs: a fill, a product, elementwise work with a broadcast, a reduction along a dimension, a transposition.
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
func.func @fill(%v: f32, %x: memref<?x?xf32>) {
  linalg.fill ins(%v : f32) outs(%x : memref<?x?xf32>)
  return
}
func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}
func.func @add_rows(%a: memref<?x?xf32>, %b: memref<?xf32>) {
  linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<?xf32>) outs(%a : memref<?x?xf32>) {
  ^bb0(%v: f32, %old: f32):
    %r = arith.addf %v, %old : f32
    linalg.yield %r : f32
  }
  return
}
func.func @row_sums(%a: memref<?x?xf32>, %out: memref<?xf32>) {
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<?x?xf32>) outs(%out : memref<?xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %r = arith.addf %v, %sum : f32
    linalg.yield %r : f32
  }
  return
}
func.func @total(%a: memref<?xf32>, %out: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%a : memref<?xf32>) outs(%out : memref<f32>) {
  ^bb0(%v: f32, %sum: f32):
    %r = arith.addf %v, %sum : f32
    linalg.yield %r : f32
  }
  return
}
func.func @turn(%a: memref<?x?xf32>, %out: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<?x?xf32>) outs(%out : memref<?x?xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  return
}
