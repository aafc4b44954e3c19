// Sizes as StableHLO's front ends compute them: broadcasts whose operands are checked when they are known.
#all = affine_map<(i, j) -> (i, j)>
func.func @sum(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> (tensor<?x?xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = shape.shape_of %x : tensor<?x?xf32> -> tensor<2xindex>
  %t = shape.shape_of %y : tensor<?x?xf32> -> tensor<2xindex>
  %w = shape.cstr_broadcastable %s, %t : tensor<2xindex>, tensor<2xindex>
  %r = shape.assuming %w -> (tensor<?x?xf32>) {
    %b = shape.broadcast %s, %t : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
    %n = tensor.extract %b[%c0] : tensor<2xindex>
    %m = tensor.extract %b[%c1] : tensor<2xindex>
    %e = tensor.empty(%n, %m) : tensor<?x?xf32>
    %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%y : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%v: f32, %o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %h = tensor.dim %x, %c0 : tensor<?x?xf32>
      %g = tensor.dim %x, %c1 : tensor<?x?xf32>
      %k = arith.remui %i, %h : index
      %l = arith.remui %j, %g : index
      %u = tensor.extract %x[%k, %l] : tensor<?x?xf32>
      %z = arith.addf %u, %v : f32
      linalg.yield %z : f32
    } -> tensor<?x?xf32>
    shape.assuming_yield %q : tensor<?x?xf32>
  }
  %count = shape.num_elements %t : tensor<2xindex> -> index
  return %r, %count : tensor<?x?xf32>, index
}

// To a shape that the program computes.
func.func @flat(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %s = shape.shape_of %x : tensor<?x?xf32> -> tensor<2xindex>
  %n = shape.num_elements %s : tensor<2xindex> -> index
  %to = tensor.from_elements %n : tensor<1xindex>
  %f = tensor.reshape %x(%to) : (tensor<?x?xf32>, tensor<1xindex>) -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.square ins(%f : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
