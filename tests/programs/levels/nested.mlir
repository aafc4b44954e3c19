// A host loop around a parallel one, and two parallel loops one after the other.
func.func @run(%x: memref<?xf32>, %times: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.for %k = %c0 to %times step %c1 {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xf32>
      %r = arith.addf %v, %one : f32
      memref.store %r, %x[%i] : memref<?xf32>
    }
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xf32>
      %r = arith.mulf %v, %two : f32
      memref.store %r, %x[%i] : memref<?xf32>
    }
  }
  return
}
