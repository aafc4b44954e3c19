// Rows that GPUs go through several elements at once: for golden/wide_rows.lowered.check.
#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>

// A softmax in parts, into memory of the caller's: a block has four rows, of which each thread keeps two pieces.
func.func @shares(%x: tensor<1030x1024xf32>, %out_to: memref<1030x1024xf32>) {
  %out = bufferization.to_tensor %out_to restrict writable : memref<1030x1024xf32> to tensor<1030x1024xf32>
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %numbers = tensor.empty() : tensor<1030xf32>
  %elements = tensor.empty() : tensor<1030x1024xf32>
  %from = linalg.fill ins(%least : f32) outs(%numbers : tensor<1030xf32>) -> tensor<1030xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%numbers : tensor<1030xf32>) -> tensor<1030xf32>
  %most = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1030x1024xf32>) outs(%from : tensor<1030xf32>) {
  ^bb0(%v: f32, %sofar: f32):
    %larger = arith.maxnumf %v, %sofar : f32
    linalg.yield %larger : f32
  } -> tensor<1030xf32>
  %powers = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<1030x1024xf32>, tensor<1030xf32>) outs(%elements : tensor<1030x1024xf32>) {
  ^bb0(%v: f32, %m: f32, %o: f32):
    %less = arith.subf %v, %m : f32
    %power = math.exp %less : f32
    linalg.yield %power : f32
  } -> tensor<1030x1024xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%powers : tensor<1030x1024xf32>) outs(%nothing : tensor<1030xf32>) {
  ^bb0(%v: f32, %sofar: f32):
    %more = arith.addf %v, %sofar : f32
    linalg.yield %more : f32
  } -> tensor<1030xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%powers, %sum : tensor<1030x1024xf32>, tensor<1030xf32>) outs(%out : tensor<1030x1024xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %part = arith.divf %v, %s : f32
    linalg.yield %part : f32
  } -> tensor<1030x1024xf32>
  bufferization.materialize_in_destination %y in restrict writable %out_to
      : (tensor<1030x1024xf32>, memref<1030x1024xf32>) -> ()
  return
}
