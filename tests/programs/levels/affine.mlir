// affine.parallel with a minimum among its bounds, and a subscript that is an affine expression.
func.func @run(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.parallel (%i) = (0) to (min(%n, 50)) {
    %v = affine.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %v : f32
    affine.store %r, %y[%i * 2 + 1] : memref<?xf32>
  }
  return
}
