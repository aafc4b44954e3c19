// c = a b
func.func @matmul(%a: tensor<ROWSxCOLSxf32>, %b: tensor<ROWSxCOLSxf32>,
                  %c: tensor<ROWSxCOLSxf32> {iree.abi.output = 0 : index}) -> tensor<ROWSxCOLSxf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<ROWSxCOLSxf32>) -> tensor<ROWSxCOLSxf32>
  %r = linalg.matmul ins(%a, %b : tensor<ROWSxCOLSxf32>, tensor<ROWSxCOLSxf32>) outs(%zeros : tensor<ROWSxCOLSxf32>)
      -> tensor<ROWSxCOLSxf32>
  return %r : tensor<ROWSxCOLSxf32>
}
