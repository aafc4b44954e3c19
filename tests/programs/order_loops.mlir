// Loops in another order than memory's: for golden/order_loops.kernels.check and test_order_loops.py.

// Gradients of a convolution, with their loops as StableHLO's lowering numbers them: of the filter,
#image = affine_map<(n, o, y, i, x, j, c) -> (n, y + i, x + j, c)>
#result = affine_map<(n, o, y, i, x, j, c) -> (n, i, j, o)>
#filter = affine_map<(n, o, y, i, x, j, c) -> (y, x, c, o)>
func.func @of_filter(%x: tensor<2x?x?x20xf32>, %dy: tensor<2x?x?x24xf32>, %dw: tensor<3x3x20x24xf32>) -> tensor<3x3x20x24xf32> {
  %0 = linalg.generic {indexing_maps = [#image, #result, #filter],
                       iterator_types = ["reduction", "parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%x, %dy : tensor<2x?x?x20xf32>, tensor<2x?x?x24xf32>) outs(%dw : tensor<3x3x20x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x3x20x24xf32>
  return %0 : tensor<3x3x20x24xf32>
}

// and of the image. Its filter is turned, and the steps that lie side by side are taken last.
#padded = affine_map<(o, c, y, i, x, j, n) -> (n, y + i, x + j, o)>
#turned = affine_map<(o, c, y, i, x, j, n) -> (i, j, c, o)>
#images = affine_map<(o, c, y, i, x, j, n) -> (n, y, x, c)>
func.func @of_image(%dy: memref<2x9x11x24xf32>, %w: memref<3x3x20x24xf32>, %dx: memref<2x7x9x20xf32>) {
  linalg.generic {indexing_maps = [#padded, #turned, #images],
                  iterator_types = ["reduction", "parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%dy, %w : memref<2x9x11x24xf32>, memref<3x3x20x24xf32>) outs(%dx : memref<2x7x9x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A filter with its input channels in its rows.
func.func @channels_last(%x: memref<?x?x?x?xf32>, %w: memref<?x?x?x?xf32>, %y: memref<?x?x?x?xf32>) {
  linalg.conv_2d_nhwc_fhwc {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : memref<?x?x?x?xf32>, memref<?x?x?x?xf32>) outs(%y : memref<?x?x?x?xf32>)
  return
}

// The first of the largest elements: its steps keep their order, wherever the output's rows lie.
func.func @first(%x: memref<5x6x80xi32>, %most: memref<80xi32>, %place: memref<80xi32>) {
  linalg.generic {indexing_maps = [affine_map<(a, c, b) -> (b, a, c)>, affine_map<(a, c, b) -> (c)>,
                                   affine_map<(a, c, b) -> (c)>],
                  iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<5x6x80xi32>) outs(%most, %place : memref<80xi32>, memref<80xi32>) {
  ^bb0(%v: i32, %m: i32, %p: i32):
    %a = linalg.index 0 : index
    %b = linalg.index 2 : index
    %c5 = arith.constant 5 : index
    %row = arith.muli %a, %c5 : index
    %n = arith.addi %row, %b : index
    %number = arith.index_cast %n : index to i32
    %is = arith.cmpi sgt, %v, %m : i32
    %more = arith.select %is, %v, %m : i32
    %at = arith.select %is, %number, %p : i32
    linalg.yield %more, %at : i32, i32
  }
  return
}
