// scf.parallel of four dimensions: one more than a grid has; the value comes from the indices.
func.func @run(%x: memref<?x?x?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  %n0 = memref.dim %x, %c0 : memref<?x?x?x?xindex>
  %n1 = memref.dim %x, %c1 : memref<?x?x?x?xindex>
  %n2 = memref.dim %x, %c2 : memref<?x?x?x?xindex>
  %n3 = memref.dim %x, %c3 : memref<?x?x?x?xindex>
  scf.parallel (%i, %j, %k, %l) = (%c0, %c0, %c0, %c0) to (%n0, %n1, %n2, %n3) step (%c1, %c1, %c1, %c1) {
    %a = arith.muli %i, %c100 : index
    %b = arith.addi %a, %j : index
    %c = arith.muli %b, %c100 : index
    %d = arith.addi %c, %k : index
    %e = arith.muli %d, %c100 : index
    %f = arith.addi %e, %l : index
    memref.store %f, %x[%i, %j, %k, %l] : memref<?x?x?x?xindex>
  }
  return
}
