// scf.parallel of two dimensions; the value comes from the indices.
func.func @run(%x: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %n0 = memref.dim %x, %c0 : memref<?x?xindex>
  %n1 = memref.dim %x, %c1 : memref<?x?xindex>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n0, %n1) step (%c1, %c1) {
    %a = arith.muli %i, %c100 : index
    %b = arith.addi %a, %j : index
    memref.store %b, %x[%i, %j] : memref<?x?xindex>
  }
  return
}
