// scf.parallel of one dimension, with bounds of the caller's and a step of three.
func.func @run(%x: memref<?xf32>, %from: index, %to: index) {
  %c3 = arith.constant 3 : index
  scf.parallel (%i) = (%from) to (%to) step (%c3) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %v : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  return
}
