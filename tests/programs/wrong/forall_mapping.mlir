// A loop with a mapping for the transform dialect.
func.func @f(%x: memref<64xf32>) {
  %c = arith.constant 2.0 : f32
  scf.forall (%i) in (64) {
    memref.store %c, %x[%i] : memref<64xf32>
  } {mapping = [#gpu.thread<x>]}
  return
}
