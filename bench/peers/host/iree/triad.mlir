// a = b + s * c
#line = affine_map<(i) -> (i)>
func.func @triad(%b: tensor<ROWSxf32>, %c: tensor<ROWSxf32>, %a: tensor<ROWSxf32> {iree.abi.output = 0 : index},
                 %s: f32) -> tensor<ROWSxf32> {
  %r = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%b, %c : tensor<ROWSxf32>, tensor<ROWSxf32>) outs(%a : tensor<ROWSxf32>) {
  ^bb0(%bi: f32, %ci: f32, %old: f32):
    %sc = arith.mulf %s, %ci : f32
    %ai = arith.addf %sc, %bi : f32
    linalg.yield %ai : f32
  } -> tensor<ROWSxf32>
  return %r : tensor<ROWSxf32>
}
