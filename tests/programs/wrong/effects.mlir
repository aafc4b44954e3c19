// Effects between two parallel loops, of which one is threads of a block.
func.func @f(%x: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %x[%c0] : memref<?xf32>
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      gpu.barrier
      memref.store %v, %x[%j] : memref<?xf32>
    }
    memref.store %v, %x[%i] : memref<?xf32>
  }
  return
}
