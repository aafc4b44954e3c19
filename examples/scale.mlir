// x[i, j] = x[i, j] * s, from scf.parallel.
func.func @scale(%s: f32, %x: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %cols = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %cols) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32>
    %r = arith.mulf %s, %v : f32
    memref.store %r, %x[%i, %j] : memref<?x?xf32>
  }
  return
}
