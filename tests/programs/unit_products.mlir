// Products of halves and of bytes, for matrix units where a chip has some: for golden/unit_products.*.check.
func.func @product(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}
// Sums are words all the same.
func.func @whole(%a: memref<128x160xf16>, %b: memref<160x64xf16>, %c: memref<128x64xf16>) {
  linalg.matmul ins(%a, %b : memref<128x160xf16>, memref<160x64xf16>) outs(%c : memref<128x64xf16>)
  return
}
// Both factors lie across the steps, and there are several products.
func.func @across(%a: memref<2x140x70xf16>, %b: memref<2x80x140xf16>, %c: memref<2x70x80xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, i, j, k) -> (n, k, i)>, affine_map<(n, i, j, k) -> (n, j, k)>,
                                   affine_map<(n, i, j, k) -> (n, i, j)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<2x140x70xf16>, memref<2x80x140xf16>) outs(%c : memref<2x70x80xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %p = arith.extf %x : f16 to f32
    %q = arith.extf %y : f16 to f32
    %m = arith.mulf %q, %p : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  }
  return
}
// Bytes with a sign; sums are what all orders of steps give.
func.func @bytes(%a: memref<?x?xi8>, %b: memref<?x?xi8>, %c: memref<?x?xi32>) {
  linalg.matmul ins(%a, %b : memref<?x?xi8>, memref<?x?xi8>) outs(%c : memref<?x?xi32>)
  return
}
// Fragments are not of bfloats: these go as halves, up to the product.
func.func @bfloats(%a: memref<64x136xbf16>, %b: memref<136x?xbf16>, %c: memref<64x?xf32>) {
  linalg.matmul ins(%a, %b : memref<64x136xbf16>, memref<136x?xbf16>) outs(%c : memref<64x?xf32>)
  return
}
