// Loops whose threads take several elements, a block's width apart: for golden/thread_steps.*.check.
func.func @halves(%x: tensor<?xf16>, %y: tensor<?xf16>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf16>
  %e = tensor.empty(%n) : tensor<?xf16>
  %r = linalg.add ins(%x, %y : tensor<?xf16>, tensor<?xf16>) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  return %r : tensor<?xf16>
}
// Rows that are known to be long; what a row has one of is loaded once.
func.func @rows(%x: tensor<?x600xf32>, %factors: tensor<?xf32>) -> tensor<?x600xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x600xf32>
  %e = tensor.empty(%m) : tensor<?x600xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                                        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %factors : tensor<?x600xf32>, tensor<?xf32>) outs(%e : tensor<?x600xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x600xf32>
  return %r : tensor<?x600xf32>
}
// Every third element from `start` on, in place, which an author may do in any order.
func.func @thirds(%x: memref<?xi32>, %start: index, %end: index) {
  %c3 = arith.constant 3 : index
  scf.parallel (%i) = (%start) to (%end) step (%c3) {
    %v = memref.load %x[%i] : memref<?xi32>
    %r = arith.muli %v, %v : i32
    memref.store %r, %x[%i] : memref<?xi32>
  }
  return
}
// Bytes: eight for a thread, no more.
func.func @bytes(%x: memref<?xi8>, %y: memref<?xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xi8>
    memref.store %v, %y[%i] : memref<?xi8>
  }
  return
}
// As many as 16 bytes hold: two.
func.func @doubles(%x: memref<?xf64>, %y: memref<?xf64, strided<[?], offset: ?>>) {
  linalg.exp ins(%x : memref<?xf64>) outs(%y : memref<?xf64, strided<[?], offset: ?>>)
  return
}
// Whole blocks alone: no thread has fewer steps than the others.
func.func @whole(%x: memref<1048576xf32>, %y: memref<1048576xf32>) {
  linalg.abs ins(%x : memref<1048576xf32>) outs(%y : memref<1048576xf32>)
  return
}
// A thread for each: of few elements, of rows that may be short, where steps ask what others have done.
func.func @few(%x: memref<4096xf32>, %y: memref<4096xf32>) {
  linalg.abs ins(%x : memref<4096xf32>) outs(%y : memref<4096xf32>)
  return
}
func.func @short(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32>
    memref.store %v, %y[%i, %j] : memref<?x?xf32>
  }
  return
}
func.func @counted(%x: memref<?xi32>, %bins: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xi32>
    %bin = arith.index_cast %v : i32 to index
    %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<?xi32>) -> i32
  }
  return
}
