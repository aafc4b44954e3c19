// Nests of parallel loops that blocks of threads cannot run as they are: for golden/nests.kernels.check.
func.func @long(%x: memref<?x?xf32>, %v: f32, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%m) step (%c1) {
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
func.func @between(%x: memref<?x?xf32>, %y: memref<?xf32>, %v: f32, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %v, %y[%i] : memref<?xf32>
    scf.parallel (%j) = (%c0) to (%m) step (%c1) {
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
