// x = a * x.
func.func @scale(%a: f32, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %xi = memref.load %x[%i] : memref<?xf32>
    %ax = arith.mulf %a, %xi : f32
    memref.store %ax, %x[%i] : memref<?xf32>
  }
  return
}
