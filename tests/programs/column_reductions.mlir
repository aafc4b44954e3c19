// Columns, rows in pieces and long rows, which linalg reduces: for golden/column_reductions.kernels.check.
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// The loop that reduces is the outer one. How many steps there are shows when the function runs.
func.func @sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %more = arith.addf %sum, %v : f32
    linalg.yield %more : f32
  }
  return
}

// Two outputs, and steps that count.
func.func @both(%x: memref<1000x70xf32>, %most: memref<70xf32>, %last: memref<70xi32>) {
  linalg.generic {indexing_maps = [#all, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1000x70xf32>) outs(%most, %last : memref<70xf32>, memref<70xi32>) {
  ^bb0(%v: f32, %high: f32, %number: i32):
    %higher = arith.maximumf %v, %high : f32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %ij = arith.muli %i, %j : index
    %n = arith.index_cast %ij : index to i32
    %later = arith.maxsi %n, %number : i32
    linalg.yield %higher, %later : f32, i32
  }
  return
}

// Loops that reduce around others that do not: each step of them would be a launch.
func.func @between(%x: memref<?x?x?x?xf64>, %y: memref<?x?xf64>) {
  linalg.reduce {arith.addf} ins(%x : memref<?x?x?x?xf64>) outs(%y : memref<?x?xf64>) dimensions = [0, 2]
  return
}
func.func @few(%x: memref<20x6x3xi16>, %y: memref<6x3xi16>) {
  linalg.reduce {arith.addi} ins(%x : memref<20x6x3xi16>) outs(%y : memref<6x3xi16>) dimensions = [0]
  return
}

// What a batch normalization asks of each channel.
func.func @channels(%x: memref<?x?x?x?xf32>, %y: memref<?xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<?x?x?x?xf32>) outs(%y : memref<?xf32>) dimensions = [0, 2, 3]
  return
}
func.func @of_images(%x: memref<8x6x20x20xf32>, %y: memref<6xf32>) {
  linalg.reduce {arith.addf} ins(%x : memref<8x6x20x20xf32>) outs(%y : memref<6xf32>) dimensions = [0, 2, 3]
  return
}
func.func @pieces(%x: memref<3x2x5x4x4x36xi32>, %y: memref<2x4xi32>) {
  linalg.reduce {arith.addi} ins(%x : memref<3x2x5x4x4x36xi32>) outs(%y : memref<2x4xi32>) dimensions = [0, 2, 4, 5]
  return
}

func.func @shares(%x: memref<3x3000xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<3x3000xf32>) outs(%x : memref<3x3000xf32>)
  return
}
func.func @any_shares(%x: memref<?x?xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%x : memref<?x?xf32>)
  return
}
