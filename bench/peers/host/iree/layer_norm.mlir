// out[r, :] = (x[r, :] - mean) / sqrt(variance + epsilon) * gamma + beta
#matrix = affine_map<(r, c) -> (r, c)>
#rows = affine_map<(r, c) -> (r)>
#cols = affine_map<(r, c) -> (c)>
func.func @layer_norm(%x: tensor<ROWSxCOLSxf32>, %gamma: tensor<COLSxf32>, %beta: tensor<COLSxf32>,
                      %out: tensor<ROWSxCOLSxf32> {iree.abi.output = 0 : index}, %epsilon: f32)
    -> tensor<ROWSxCOLSxf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %count = arith.constant COLS.0 : f32
  %empty = tensor.empty() : tensor<ROWSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %sums = linalg.generic {indexing_maps = [#matrix, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<ROWSxCOLSxf32>) outs(%zeros : tensor<ROWSxf32>) {
  ^bb0(%v: f32, %acc: f32):
    %next = arith.addf %acc, %v : f32
    linalg.yield %next : f32
  } -> tensor<ROWSxf32>
  %squares = linalg.generic {indexing_maps = [#matrix, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x, %sums : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>) outs(%zeros : tensor<ROWSxf32>) {
  ^bb0(%v: f32, %sum: f32, %acc: f32):
    %mean = arith.divf %sum, %count : f32
    %d = arith.subf %v, %mean : f32
    %dd = arith.mulf %d, %d : f32
    %next = arith.addf %acc, %dd : f32
    linalg.yield %next : f32
  } -> tensor<ROWSxf32>
  %r = linalg.generic {indexing_maps = [#matrix, #rows, #rows, #cols, #cols, #matrix],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %sums, %squares, %gamma, %beta
          : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>, tensor<COLSxf32>, tensor<COLSxf32>)
      outs(%out : tensor<ROWSxCOLSxf32>) {
  ^bb0(%v: f32, %sum: f32, %square: f32, %g: f32, %b: f32, %old: f32):
    %mean = arith.divf %sum, %count : f32
    %variance = arith.divf %square, %count : f32
    %positive = arith.addf %variance, %epsilon : f32
    %deviation = math.sqrt %positive : f32
    %scale = arith.divf %one, %deviation : f32
    %d = arith.subf %v, %mean : f32
    %normal = arith.mulf %d, %scale : f32
    %scaled = arith.mulf %normal, %g : f32
    %y = arith.addf %scaled, %b : f32
    linalg.yield %y : f32
  } -> tensor<ROWSxCOLSxf32>
  return %r : tensor<ROWSxCOLSxf32>
}
