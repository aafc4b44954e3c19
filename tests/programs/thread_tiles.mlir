// Products whose threads have several elements each: for golden/thread_tiles.kernels.check.
func.func @product(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// Rows in fours; sums in another type than what is multiplied.
func.func @fours(%a: memref<64x12xi8>, %b: memref<12x96xi8>, %c: memref<64x96xi32>) {
  linalg.matmul ins(%a, %b : memref<64x12xi8>, memref<12x96xi8>) outs(%c : memref<64x96xi32>)
  return
}

// The loop over columns of the image is tiled, several loops reduce, and the image is read at sums of two loops.
func.func @convolution(%x: memref<2x12x15x3xf64>, %w: memref<3x2x3x16xf64>, %y: memref<2x10x14x16xf64>) {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : memref<2x12x15x3xf64>, memref<3x2x3x16xf64>) outs(%y : memref<2x10x14x16xf64>)
  return
}

// Few elements, and a loop that every input depends on: a thread for each element.
func.func @few(%a: memref<16x40xf32>, %b: memref<40x16xf32>, %c: memref<16x16xf32>) {
  linalg.matmul ins(%a, %b : memref<16x40xf32>, memref<40x16xf32>) outs(%c : memref<16x16xf32>)
  return
}
func.func @largest(%x: memref<2x64x64x16xf32>, %window: memref<2x2xf32>, %y: memref<2x63x63x16xf32>) {
  linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %window : memref<2x64x64x16xf32>, memref<2x2xf32>) outs(%y : memref<2x63x63x16xf32>)
  return
}

// Images as JAX numbers the loops, the batch innermost: rows of threads lie along rows of the output.
#image = affine_map<(f, y, x, n, c, i, j) -> (n, c, y + i, x + j)>
#filter = affine_map<(f, y, x, n, c, i, j) -> (f, c, i, j)>
#result = affine_map<(f, y, x, n, c, i, j) -> (n, f, y, x)>
func.func @images(%x: memref<2x3x11x21xf32>, %w: memref<16x3x3x2xf32>, %y: memref<2x16x9x20xf32>) {
  linalg.generic {indexing_maps = [#image, #filter, #result],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<2x3x11x21xf32>, memref<16x3x3x2xf32>) outs(%y : memref<2x16x9x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}
