// Products whose blocks have a tile of the output each.
func.func @product(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// All of every tile is there; sums are wider than what is multiplied.
#ik = affine_map<(i, j, k) -> (i, k)>
#kj = affine_map<(i, j, k) -> (k, j)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ki = affine_map<(i, j, k) -> (k, i)>
#ij = affine_map<(i, j, k) -> (i, j)>
func.func @whole(%a: memref<64x160xi16>, %b: memref<160x128xi16>, %c: memref<64x128xi32>) {
  linalg.generic {indexing_maps = [#ik, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x160xi16>, memref<160x128xi16>) outs(%c : memref<64x128xi32>) {
  ^bb0(%l: i16, %r: i16, %sum: i32):
    %l4 = arith.extsi %l : i16 to i32
    %r4 = arith.extsi %r : i16 to i32
    %lr = arith.muli %l4, %r4 : i32
    %next = arith.addi %sum, %lr : i32
    linalg.yield %next : i32
  }
  return
}

// Rows of both inputs; the last steps and the last tiles are not whole. The step's number counts, too.
func.func @rows(%a: memref<70x37xf16>, %b: memref<67x37xf16>, %c: memref<70x67xf32>) {
  linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<70x37xf16>, memref<67x37xf16>) outs(%c : memref<70x67xf32>) {
  ^bb0(%l: f16, %r: f16, %sum: f32):
    %k = linalg.index 2 : index
    %i = linalg.index 0 : index
    %ki = arith.addi %k, %i : index
    %n = arith.index_cast %ki : index to i32
    %f = arith.sitofp %n : i32 to f32
    %lf = arith.extf %l : f16 to f32
    %rf = arith.extf %r : f16 to f32
    %lr = arith.mulf %lf, %rf : f32
    %lrf = arith.mulf %lr, %f : f32
    %next = arith.addf %lrf, %sum : f32
    linalg.yield %next : f32
  }
  return
}

// Columns of both inputs, and an output that is laid out by columns: its rows are the tile's columns.
func.func @columns(%a: memref<130x80xf64>, %b: memref<90x130xf64>, %c: memref<80x90xf64, strided<[1, 80]>>) {
  linalg.generic {indexing_maps = [#ki, #jk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<130x80xf64>, memref<90x130xf64>) outs(%c : memref<80x90xf64, strided<[1, 80]>>) {
  ^bb0(%l: f64, %r: f64, %least: f64):
    %lr = arith.subf %l, %r : f64
    %next = arith.minimumf %least, %lr : f64
    linalg.yield %next : f64
  }
  return
}

// Scores of attention: a product for each of two outer loops.
#q = affine_map<(n, h, i, j, k) -> (n, i, h, k)>
#key = affine_map<(n, h, i, j, k) -> (n, j, h, k)>
#s = affine_map<(n, h, i, j, k) -> (n, h, i, j)>
func.func @scores(%q: memref<2x65x3x16xf32>, %key: memref<2x65x3x16xf32>, %s: memref<2x3x65x65xf32>) {
  linalg.generic {indexing_maps = [#q, #key, #s],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %key : memref<2x65x3x16xf32>, memref<2x65x3x16xf32>) outs(%s : memref<2x3x65x65xf32>) {
  ^bb0(%l: f32, %r: f32, %sum: f32):
    %lr = arith.mulf %l, %r : f32
    %next = arith.addf %sum, %lr : f32
    linalg.yield %next : f32
  }
  return
}

// What may fail is computed where there are elements alone: by a thread for a few of them.
func.func @quotients(%a: memref<66x130xi32>, %b: memref<130x66xi32>, %c: memref<66x66xi32>) {
  linalg.generic {indexing_maps = [#ik, #kj, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<66x130xi32>, memref<130x66xi32>) outs(%c : memref<66x66xi32>) {
  ^bb0(%l: i32, %r: i32, %sum: i32):
    %lr = arith.divsi %l, %r : i32
    %next = arith.addi %sum, %lr : i32
    linalg.yield %next : i32
  }
  return
}
