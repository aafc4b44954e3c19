// Rows of memory that linalg reduces: for golden/row_reductions.kernels.check.
#all = affine_map<(i, k) -> (i, k)>
#row = affine_map<(i, k) -> (i)>
#step = affine_map<(i, k) -> (k)>

// How long a row is shows when the function runs.
func.func @sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %more = arith.addf %sum, %v : f32
    linalg.yield %more : f32
  }
  return
}

func.func @product(%a: memref<7x100xf64>, %x: memref<100xf64>, %y: memref<7xf64>) {
  linalg.matvec ins(%a, %x : memref<7x100xf64>, memref<100xf64>) outs(%y : memref<7xf64>)
  return
}

// A block for each row, and two outputs.
func.func @both_ends(%x: memref<3x5000xi32>, %least: memref<3xi32>, %most: memref<3xi32>) {
  linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x5000xi32>) outs(%least, %most : memref<3xi32>, memref<3xi32>) {
  ^bb0(%v: i32, %low: i32, %high: i32):
    %lower = arith.minsi %low, %v : i32
    %higher = arith.maxsi %v, %high : i32
    linalg.yield %lower, %higher : i32, i32
  }
  return
}

// Rows whose numbers are two, and a step that counts.
func.func @weighted(%x: memref<5x3x70xf32>, %w: memref<3xf32>, %y: memref<3x5xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(i, k, j) -> (j, i, k)>, affine_map<(i, k, j) -> (i)>, affine_map<(i, k, j) -> (i, j)>],
      iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %w : memref<5x3x70xf32>, memref<3xf32>) outs(%y : memref<3x5xf32>) {
  ^bb0(%v: f32, %weight: f32, %sum: f32):
    %k = linalg.index 1 : index
    %n = arith.index_cast %k : index to i32
    %number = arith.sitofp %n : i32 to f32
    %scaled = arith.mulf %v, %weight : f32
    %counted = arith.mulf %scaled, %number : f32
    %more = arith.addf %counted, %sum : f32
    linalg.yield %more : f32
  }
  return
}

// Everything, though one loop is parallel; and less of it, which a block does.
func.func @one_row(%x: memref<1x50000xf32>, %y: memref<1xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<1x50000xf32>) outs(%y : memref<1xf32>) dimensions = [1]
  return
}
func.func @all(%x: memref<50x20xf32>, %y: memref<f32>) {
  linalg.reduce {arith.addf} ins(%x : memref<50x20xf32>) outs(%y : memref<f32>) dimensions = [0, 1]
  return
}

// Not along the rows of memory; few steps; a product of matrices: a thread for each element.
func.func @columns(%x: memref<100x64xf32>, %y: memref<64xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<100x64xf32>) outs(%y : memref<64xf32>) dimensions = [0]
  return
}
func.func @short(%x: memref<64x63xf32>, %y: memref<64xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<64x63xf32>) outs(%y : memref<64xf32>) dimensions = [1]
  return
}
