// Products of rows with rows: for golden/row_products.kernels.check.
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (j, k)>
#both = affine_map<(i, j, k) -> (i, j)>

// A layer: how many rows and steps there are shows when the function runs.
func.func @layer(%x: memref<?x?xf32>, %w: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x?xf32>, memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }
  return
}

// Halves, whose sums are words; five rows are two subgroups' and a row of which the second has nothing else.
func.func @halves(%x: memref<5x96xf16>, %w: memref<7x96xf16>, %y: memref<5x7xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<5x96xf16>, memref<7x96xf16>) outs(%y : memref<5x7xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %wide_a = arith.extf %a : f16 to f32
    %wide_b = arith.extf %b : f16 to f32
    %product = arith.mulf %wide_a, %wide_b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }
  return
}

// One query against each key, in batches: a row of the first input, and several of the second.
func.func @scores(%query: memref<3x1x64xf32>, %keys: memref<3x?x64xf32>, %scores: memref<3x1x?xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(n, i, j, k) -> (n, i, k)>, affine_map<(n, i, j, k) -> (n, j, k)>,
                       affine_map<(n, i, j, k) -> (n, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%query, %keys : memref<3x1x64xf32>, memref<3x?x64xf32>) outs(%scores : memref<3x1x?xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }
  return
}

// Rows that are far from each other and an output that lies across; the largest distance, and a step that counts.
func.func @distances(%x: memref<?x?xi32, strided<[?, 1], offset: ?>>, %y: memref<?x?xi32, strided<[?, 1], offset: ?>>,
                     %most: memref<?x?xi32, strided<[1, ?]>>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : memref<?x?xi32, strided<[?, 1], offset: ?>>, memref<?x?xi32, strided<[?, 1], offset: ?>>)
      outs(%most : memref<?x?xi32, strided<[1, ?]>>) {
  ^bb0(%a: i32, %b: i32, %before: i32):
    %step = linalg.index 2 : index
    %number = arith.index_cast %step : index to i32
    %difference = arith.subi %a, %b : i32
    %distance = math.absi %difference : i32
    %counted = arith.addi %distance, %number : i32
    %larger = arith.maxsi %before, %counted : i32
    linalg.yield %larger : i32
  }
  return
}

// Rows too short for a subgroup.
func.func @short(%x: memref<8x63xf32>, %w: memref<16x63xf32>, %y: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x63xf32>, memref<16x63xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }
  return
}

// GPUs take pieces of the rows: four elements of the wider input, and as many of the other one.
func.func @mixed(%x: memref<?x?xf16>, %w: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x?xf16>, memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f16, %b: f32, %sum: f32):
    %wide = arith.extf %a : f16 to f32
    %product = arith.mulf %wide, %b : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }
  return
}

// Eight of both.
func.func @bytes(%x: memref<3x512xi8>, %w: memref<7x512xi8>, %y: memref<3x7xi32>) {
  linalg.generic {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<3x512xi8>, memref<7x512xi8>) outs(%y : memref<3x7xi32>) {
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %left = arith.extsi %a : i8 to i32
    %right = arith.extsi %b : i8 to i32
    %product = arith.muli %left, %right : i32
    %more = arith.addi %sum, %product : i32
    linalg.yield %more : i32
  }
  return
}
