// out[r, :] = exp(x[r, :] - max) / sum of these
#matrix = affine_map<(r, c) -> (r, c)>
#rows = affine_map<(r, c) -> (r)>
func.func @softmax(%x: tensor<ROWSxCOLSxf32>, %out: tensor<ROWSxCOLSxf32> {iree.abi.output = 0 : index})
    -> tensor<ROWSxCOLSxf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<ROWSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %lows = linalg.fill ins(%lowest : f32) outs(%empty : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %most = linalg.generic {indexing_maps = [#matrix, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<ROWSxCOLSxf32>) outs(%lows : tensor<ROWSxf32>) {
  ^bb0(%v: f32, %acc: f32):
    %next = arith.maxnumf %acc, %v : f32
    linalg.yield %next : f32
  } -> tensor<ROWSxf32>
  %whole = tensor.empty() : tensor<ROWSxCOLSxf32>
  %e = linalg.generic {indexing_maps = [#matrix, #rows, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>) outs(%whole : tensor<ROWSxCOLSxf32>) {
  ^bb0(%v: f32, %m: f32, %old: f32):
    %d = arith.subf %v, %m : f32
    %power = math.exp %d : f32
    linalg.yield %power : f32
  } -> tensor<ROWSxCOLSxf32>
  %sums = linalg.generic {indexing_maps = [#matrix, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<ROWSxCOLSxf32>) outs(%zeros : tensor<ROWSxf32>) {
  ^bb0(%v: f32, %acc: f32):
    %next = arith.addf %acc, %v : f32
    linalg.yield %next : f32
  } -> tensor<ROWSxf32>
  %r = linalg.generic {indexing_maps = [#matrix, #rows, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%e, %sums : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>) outs(%out : tensor<ROWSxCOLSxf32>) {
  ^bb0(%v: f32, %sum: f32, %old: f32):
    %share = arith.divf %v, %sum : f32
    linalg.yield %share : f32
  } -> tensor<ROWSxCOLSxf32>
  return %r : tensor<ROWSxCOLSxf32>
}
