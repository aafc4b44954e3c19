// scf.forall.
func.func @run(%x: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  scf.forall (%i, %j) in (%n, %m) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32>
    %r = arith.mulf %v, %v : f32
    memref.store %r, %x[%i, %j] : memref<?x?xf32>
  }
  return
}
