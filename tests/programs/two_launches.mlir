// Two kernels of one function: for golden/two_launches.kernels.check.
func.func @twice(%x: memref<16xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%i) = (%c0) to (%c16) step (%c1) {
    memref.store %v, %x[%i] : memref<16xf32>
  }
  scf.parallel (%i) = (%c0) to (%c16) step (%c1) {
    %w = memref.load %x[%i] : memref<16xf32>
    %r = arith.mulf %w, %w : f32
    memref.store %r, %x[%i] : memref<16xf32>
  }
  return
}
