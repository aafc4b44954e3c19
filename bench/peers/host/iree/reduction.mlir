// sum[0] = the sum of x, in two steps: IREE's threads share no reduction, so rows of 4096 elements are added up first.
#matrix = affine_map<(r, c) -> (r, c)>
#rows = affine_map<(r, c) -> (r)>
#line = affine_map<(i) -> (i)>
#first = affine_map<(i) -> (0)>
func.func @reduction(%x: tensor<ROWSxf32>, %sum: tensor<1xf32> {iree.abi.output = 0 : index}) -> tensor<1xf32> {
  %zero = arith.constant 0.0 : f32
  %matrix = tensor.expand_shape %x [[0, 1]] output_shape [RUNS, 4096] : tensor<ROWSxf32> into tensor<RUNSx4096xf32>
  %empty = tensor.empty() : tensor<RUNSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<RUNSxf32>) -> tensor<RUNSxf32>
  %sums = linalg.generic {indexing_maps = [#matrix, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%matrix : tensor<RUNSx4096xf32>) outs(%zeros : tensor<RUNSxf32>) {
  ^bb0(%v: f32, %acc: f32):
    %next = arith.addf %acc, %v : f32
    linalg.yield %next : f32
  } -> tensor<RUNSxf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%sum : tensor<1xf32>) -> tensor<1xf32>
  %r = linalg.generic {indexing_maps = [#line, #first], iterator_types = ["reduction"]}
      ins(%sums : tensor<RUNSxf32>) outs(%nothing : tensor<1xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %next = arith.addf %acc, %v : f32
    linalg.yield %next : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}
