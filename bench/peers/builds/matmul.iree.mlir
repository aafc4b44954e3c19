// What programs/wmma_matmul.mlir is, as a tensor program; tiles and matrix units are IREE's choice.
func.func @matmul_f16(%a: tensor<?x1024xf16>, %b: tensor<1024x1024xf16>, %c: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x1024xf16>, tensor<1024x1024xf16>) outs(%c : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %r : tensor<?x1024xf32>
}
