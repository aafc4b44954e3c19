// What MLIR has no lowering for: for golden/missing_lowerings.kernels.check.
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
func.func @two_sizes(%x: memref<?xf32>, %a: index, %b: index) -> memref<?x?x2xf32> {
  %e = memref.expand_shape %x [[0, 1, 2]] output_shape [%a, %b, 2] : memref<?xf32> into memref<?x?x2xf32>
  return %e : memref<?x?x2xf32>
}
func.func @steps(%x: memref<2x3x4xf32>, %step: index) -> memref<4xf32, strided<[1], offset: 16>> {
  %v = memref.subview %x[1, 1, 0] [1, 1, 4] [1, %step, 1]
    : memref<2x3x4xf32> to memref<4xf32, strided<[1], offset: 16>>
  return %v : memref<4xf32, strided<[1], offset: 16>>
}
func.func @kept(%x: memref<?x?xf32, strided<[?, ?]>>, %n: index) -> memref<1xf32, strided<[?], offset: ?>> {
  %v = memref.subview %x[%n, 0] [1, 1] [1, 1]
    : memref<?x?xf32, strided<[?, ?]>> to memref<1xf32, strided<[?], offset: ?>>
  return %v : memref<1xf32, strided<[?], offset: ?>>
}
func.func @mapped(%x: memref<8x64xf32>, %v: f32) {
  scf.forall (%i) in (8) {
    scf.forall (%j) in (64) {
      memref.store %v, %x[%i, %j] : memref<8x64xf32>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}
// Where the mask is not set, the accumulator is the result.
gpu.module @masked {
  gpu.func @masked(%x: memref<1x4xi32>, %most: memref<4xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = vector.load %x[%c0, %c0] : memref<1x4xi32>, vector<1x4xi32>
    %m = vector.load %most[%c0] : memref<4xi32>, vector<4xi32>
    %mask = vector.create_mask %c1, %n : vector<1x4xi1>
    %r = vector.mask %mask {
      vector.multi_reduction <maxsi>, %v, %m [0] : vector<1x4xi32> to vector<4xi32>
    } : vector<1x4xi1> -> vector<4xi32>
    vector.store %r, %most[%c0] : memref<4xi32>, vector<4xi32>
    gpu.return
  }
}
