// Layers whose weights are stored output by output: of a few rows, and of many.
func.func @few(%x: tensor<3x64xf32>, %w: tensor<96x64xf32>) -> tensor<3x96xf32> {
  %empty = tensor.empty() : tensor<64x96xf32>
  %t = linalg.transpose ins(%w : tensor<96x64xf32>) outs(%empty : tensor<64x96xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<3x96xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<3x96xf32>) -> tensor<3x96xf32>
  %r = linalg.matmul ins(%x, %t : tensor<3x64xf32>, tensor<64x96xf32>) outs(%zeros : tensor<3x96xf32>) -> tensor<3x96xf32>
  return %r : tensor<3x96xf32>
}
func.func @many(%x: tensor<80x64xf32>, %w: tensor<96x64xf32>) -> tensor<80x96xf32> {
  %empty = tensor.empty() : tensor<64x96xf32>
  %t = linalg.transpose ins(%w : tensor<96x64xf32>) outs(%empty : tensor<64x96xf32>) permutation = [1, 0]
  %out = tensor.empty() : tensor<80x96xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<80x96xf32>) -> tensor<80x96xf32>
  %r = linalg.matmul ins(%x, %t : tensor<80x64xf32>, tensor<64x96xf32>) outs(%zeros : tensor<80x96xf32>) -> tensor<80x96xf32>
  return %r : tensor<80x96xf32>
}
