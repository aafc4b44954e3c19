// A parallel loop with a result that no array holds.
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.parallel (%i) = (%c0) to (%c4) step (%c1) init (%x) -> memref<4xf32> {
    scf.reduce(%y : memref<4xf32>) {
    ^bb0(%a: memref<4xf32>, %b: memref<4xf32>):
      scf.reduce.return %b : memref<4xf32>
    }
  }
  return %r : memref<4xf32>
}
