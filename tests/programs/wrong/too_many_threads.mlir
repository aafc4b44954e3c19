// More threads than a block may have.
func.func @f(%x: memref<64x2048xf32>) {
  %c = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %m = arith.constant 2048 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%m) step (%c1) {
      gpu.barrier
      memref.store %c, %x[%i, %j] : memref<64x2048xf32>
    }
  }
  return
}
