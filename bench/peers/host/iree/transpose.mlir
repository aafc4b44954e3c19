// out = transpose(x)
func.func @transpose(%x: tensor<ROWSxCOLSxf32>, %out: tensor<COLSxROWSxf32> {iree.abi.output = 0 : index})
    -> tensor<COLSxROWSxf32> {
  %r = linalg.transpose ins(%x : tensor<ROWSxCOLSxf32>) outs(%out : tensor<COLSxROWSxf32>) permutation = [1, 0]
  return %r : tensor<COLSxROWSxf32>
}
