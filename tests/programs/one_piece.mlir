// Dimensions that are one piece of memory: for golden/one_piece.kernels.check.
#all = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#image = affine_map<(n, c, h, w) -> (n, c)>

// Channels stay apart: their numbers are one dimension, not four.
func.func @biased(%x: memref<?x?x?x?xf32>, %bias: memref<?xf32>, %y: memref<?x?x?x?xf32>) {
  linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %bias : memref<?x?x?x?xf32>, memref<?xf32>) outs(%y : memref<?x?x?x?xf32>) {
  ^bb0(%v: f32, %b: f32, %out: f32):
    %sum = arith.addf %v, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// A named operation with an attribute about its dimensions.
func.func @turned(%x: memref<2x3x5x7xf32>, %y: memref<5x7x2x3xf32>) {
  linalg.transpose ins(%x : memref<2x3x5x7xf32>) outs(%y : memref<5x7x2x3xf32>) permutation = [2, 3, 0, 1]
  return
}

func.func @filled(%value: f32, %y: memref<?x3x?x7x2xf32>) {
  linalg.fill ins(%value : f32) outs(%y : memref<?x3x?x7x2xf32>)
  return
}

// What is reduced is one loop, what is not is another one.
func.func @of_images(%x: memref<?x?x?x?xf32>, %sums: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, #image],
                  iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : memref<?x?x?x?xf32>) outs(%sums : memref<?x?xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %more = arith.addf %sum, %v : f32
    linalg.yield %more : f32
  }
  return
}

func.func @largest(%x: memref<40x30xi32>, %most: memref<i32>) {
  linalg.reduce {arith.maxsi} ins(%x : memref<40x30xi32>) outs(%most : memref<i32>) dimensions = [0, 1]
  return
}

// Rows with gaps between them.
func.func @parts(%x: memref<4x3x5x8xf32, strided<[200, 50, 10, 1]>>, %y: memref<4x3x5x8xf32>) {
  linalg.exp ins(%x : memref<4x3x5x8xf32, strided<[200, 50, 10, 1]>>) outs(%y : memref<4x3x5x8xf32>)
  return
}

// Iterations that are counted stay as they are.
func.func @counted(%y: memref<2x3x5x7xi32>) {
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%y : memref<2x3x5x7xi32>) {
  ^bb0(%out: i32):
    %w = linalg.index 2 : index
    %v = arith.index_cast %w : index to i32
    linalg.yield %v : i32
  }
  return
}
