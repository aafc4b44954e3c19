// scf.parallel of three dimensions; the value comes from the indices.
func.func @run(%x: memref<?x?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %n0 = memref.dim %x, %c0 : memref<?x?x?xindex>
  %n1 = memref.dim %x, %c1 : memref<?x?x?xindex>
  %n2 = memref.dim %x, %c2 : memref<?x?x?xindex>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%n0, %n1, %n2) step (%c1, %c1, %c1) {
    %a = arith.muli %i, %c100 : index
    %b = arith.addi %a, %j : index
    %c = arith.muli %b, %c100 : index
    %d = arith.addi %c, %k : index
    memref.store %d, %x[%i, %j, %k] : memref<?x?x?xindex>
  }
  return
}
