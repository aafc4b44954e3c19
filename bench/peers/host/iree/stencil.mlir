// The cells inside the border: center * x + side * (its four neighbours), put into a border that is left alone.
#cell = affine_map<(i, j) -> (i, j)>
func.func @stencil(%x: tensor<ROWSxCOLSxf32>, %out: tensor<ROWSxCOLSxf32> {iree.abi.output = 0 : index}, %center: f32,
                   %side: f32) -> tensor<ROWSxCOLSxf32> {
  %mid = tensor.extract_slice %x[1, 1] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %up = tensor.extract_slice %x[0, 1] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %down = tensor.extract_slice %x[2, 1] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %left = tensor.extract_slice %x[1, 0] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %right = tensor.extract_slice %x[1, 2] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %old = tensor.extract_slice %out[1, 1] [ROWSIN, COLSIN] [1, 1] : tensor<ROWSxCOLSxf32> to tensor<ROWSINxCOLSINxf32>
  %inside = linalg.generic {indexing_maps = [#cell, #cell, #cell, #cell, #cell, #cell],
                            iterator_types = ["parallel", "parallel"]}
      ins(%mid, %up, %down, %left, %right : tensor<ROWSINxCOLSINxf32>, tensor<ROWSINxCOLSINxf32>,
          tensor<ROWSINxCOLSINxf32>, tensor<ROWSINxCOLSINxf32>, tensor<ROWSINxCOLSINxf32>)
      outs(%old : tensor<ROWSINxCOLSINxf32>) {
  ^bb0(%v: f32, %n: f32, %s: f32, %w: f32, %e: f32, %before: f32):
    %ns = arith.addf %n, %s : f32
    %we = arith.addf %w, %e : f32
    %around = arith.addf %ns, %we : f32
    %own = arith.mulf %center, %v : f32
    %others = arith.mulf %side, %around : f32
    %y = arith.addf %own, %others : f32
    linalg.yield %y : f32
  } -> tensor<ROWSINxCOLSINxf32>
  %r = tensor.insert_slice %inside into %out[1, 1] [ROWSIN, COLSIN] [1, 1]
      : tensor<ROWSINxCOLSINxf32> into tensor<ROWSxCOLSxf32>
  return %r : tensor<ROWSxCOLSxf32>
}
