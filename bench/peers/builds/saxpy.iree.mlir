// What examples/saxpy.mlir is, as a tensor program; which blocks and threads there are is IREE's choice.
#line = affine_map<(i) -> (i)>
func.func @saxpy(%a: f32, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%xi: f32, %yi: f32):
    %ax = arith.mulf %a, %xi : f32
    %ri = arith.addf %ax, %yi : f32
    linalg.yield %ri : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
