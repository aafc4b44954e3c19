// scf.parallel of one dimension, with a step of the caller's.
func.func @run(%x: memref<?xf32>, %from: index, %to: index, %step: index) {
  scf.parallel (%i) = (%from) to (%to) step (%step) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %v : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  return
}
