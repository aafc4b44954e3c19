// A loop with a mapping for the transform dialect, in a kernel.
func.func @f(%x: memref<64xf32>) {
  %c = arith.constant 2.0 : f32
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.forall (%i) in (64) {
      memref.store %c, %x[%i] : memref<64xf32>
    } {mapping = [#gpu.thread<x>]}
    gpu.terminator
  }
  return
}
