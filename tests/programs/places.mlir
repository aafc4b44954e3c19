// Largest elements and their places, which linalg finds step by step: for golden/places.kernels.check.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// How long the rows are shows when the function runs.
func.func @rows(%x: memref<?x?xf32>, %y: memref<?xf32>, %most: memref<?xf32>, %place: memref<?xi64>) {
  linalg.generic {indexing_maps = [#all, #row, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : memref<?x?xf32>, memref<?xf32>) outs(%most, %place : memref<?xf32>, memref<?xi64>) {
  ^bb0(%a: f32, %b: f32, %m: f32, %p: i64):
    %v = arith.subf %a, %b : f32
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %v, %m : f32
    %m1 = arith.select %more, %v, %m : f32
    %p1 = arith.select %more, %n, %p : i64
    linalg.yield %m1, %p1 : f32, i64
  }
  return
}

// The smallest of everything; the comparison asks what was there before whether it is larger.
func.func @least(%x: memref<5000xf64>, %least: memref<f64>, %place: memref<i32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
                  iterator_types = ["reduction"]}
      ins(%x : memref<5000xf64>) outs(%place, %least : memref<i32>, memref<f64>) {
  ^bb0(%v: f64, %p: i32, %m: f64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %less = arith.cmpf ogt, %m, %v : f64
    %m1 = arith.minimumf %v, %m : f64
    %p1 = arith.select %less, %n, %p : i32
    linalg.yield %p1, %m1 : i32, f64
  }
  return
}

func.func @columns(%x: memref<?x?xi16>, %least: memref<?xi16>, %place: memref<?xi32>) {
  linalg.generic {indexing_maps = [#all, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xi16>) outs(%least, %place : memref<?xi16>, memref<?xi32>) {
  ^bb0(%v: i16, %m: i16, %p: i32):
    %i = linalg.index 0 : index
    %n = arith.index_castui %i : index to i32
    %less = arith.cmpi ult, %v, %m : i16
    %m1 = arith.select %less, %v, %m : i16
    %p1 = arith.select %less, %n, %p : i32
    linalg.yield %m1, %p1 : i16, i32
  }
  return
}

// Here the first NaN wins.
func.func @tosa(%x: tensor<3x100x2xf32>) -> tensor<3x2xi32> {
  %r = tosa.argmax %x {axis = 1 : i32} : (tensor<3x100x2xf32>) -> tensor<3x2xi32>
  return %r : tensor<3x2xi32>
}
func.func @tosa_rows(%x: tensor<3x100xf32>) -> tensor<3xi32> {
  %r = tosa.argmax %x {axis = 1 : i32} : (tensor<3x100xf32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// The last of equal elements depends on the order of the steps.
func.func @last(%x: memref<4x100xi32>, %most: memref<4xi32>, %place: memref<4xi32>) {
  linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xi32>) outs(%most, %place : memref<4xi32>, memref<4xi32>) {
  ^bb0(%v: i32, %m: i32, %p: i32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %more = arith.cmpi sge, %v, %m : i32
    %m1 = arith.select %more, %v, %m : i32
    %p1 = arith.select %more, %n, %p : i32
    linalg.yield %m1, %p1 : i32, i32
  }
  return
}
