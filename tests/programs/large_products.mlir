// Products of 16-bit floats and of bytes whose tiles are small, or large where there are many: of any sizes, and
// from any places.
#ik = affine_map<(n, i, j, k) -> (n, i, k)>
#kj = affine_map<(n, i, j, k) -> (n, k, j)>
#ki = affine_map<(n, i, j, k) -> (n, k, i)>
#jk = affine_map<(n, i, j, k) -> (n, j, k)>
#ij = affine_map<(n, i, j, k) -> (n, i, j)>
func.func @rows(%a: memref<?x?x?xf16>, %b: memref<?x?x?xf16>, %c: memref<?x?x?xf32>) {
  linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<?x?x?xf16>, memref<?x?x?xf16>) outs(%c : memref<?x?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %p = arith.extf %x : f16 to f32
    %q = arith.extf %y : f16 to f32
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  return
}
// Both factors lie across the steps.
func.func @columns(%a: memref<?x?x?xbf16>, %b: memref<?x?x?xbf16>, %c: memref<?x?x?xbf16>) {
  linalg.generic {indexing_maps = [#ki, #kj, #ij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<?x?x?xbf16>, memref<?x?x?xbf16>) outs(%c : memref<?x?x?xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %o: bf16):
    %m = arith.mulf %x, %y : bf16
    %s = arith.addf %o, %m : bf16
    linalg.yield %s : bf16
  }
  return
}
func.func @batch(%a: memref<?x?x?xbf16>, %b: memref<?x?x?xbf16>, %c: memref<?x?x?xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<?x?x?xbf16>, memref<?x?x?xbf16>) outs(%c : memref<?x?x?xf32>)
  return
}
func.func @bytes(%a: memref<?x?x?xi8>, %b: memref<?x?x?xi8>, %c: memref<?x?x?xi32>) {
  linalg.generic {indexing_maps = [#ik, #jk, #ij], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<?x?x?xi8>, memref<?x?x?xi8>) outs(%c : memref<?x?x?xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %p = arith.extsi %x : i8 to i32
    %q = arith.extsi %y : i8 to i32
    %m = arith.muli %p, %q : i32
    %s = arith.addi %o, %m : i32
    linalg.yield %s : i32
  }
  return
}
// Views: columns from an odd one on, of which copies of 16 bytes cannot begin; every second row; every second column.
func.func @views(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %from: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = memref.dim %c, %c0 : memref<?x?xf32>
  %n = memref.dim %c, %c1 : memref<?x?xf32>
  %k = memref.dim %b, %c0 : memref<?x?xf16>
  %rows = arith.divui %m, %c2 : index
  %left = memref.subview %a[0, %from] [%rows, %k] [2, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1], offset: ?>>
  %right = memref.subview %b[0, 0] [%k, %n] [1, 2] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 2]>>
  %sums = memref.subview %c[0, 0] [%rows, %n] [2, 1] : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1]>>
  linalg.matmul ins(%left, %right : memref<?x?xf16, strided<[?, 1], offset: ?>>, memref<?x?xf16, strided<[?, 2]>>)
    outs(%sums : memref<?x?xf32, strided<[?, 1]>>)
  return
}
// A part of one matrix from any place on.
func.func @places(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %from: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %c, %c0 : memref<?x?xf32>
  %n = memref.dim %c, %c1 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf16>
  %right = memref.subview %b[%from, %from] [%k, %n] [1, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1], offset: ?>>
  linalg.matmul ins(%a, %right : memref<?x?xf16>, memref<?x?xf16, strided<[?, 1], offset: ?>>)
    outs(%c : memref<?x?xf32>)
  return
}
