// Parallel loops with results: for golden/reductions.kernels.check.
func.func @total(%x: memref<?xf32>, %start: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%start) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %r : f32
}
func.func @few(%x: memref<100xi32>) -> i32 {
  %r = affine.parallel (%i) = (0) to (100) reduce ("muli") -> i32 {
    %v = affine.load %x[%i] : memref<100xi32>
    affine.yield %v : i32
  }
  return %r : i32
}
func.func @whole(%x: memref<?xf32>, %sum: memref<f32>) {
  linalg.reduce ins(%x : memref<?xf32>) outs(%sum : memref<f32>) dimensions = [0] (%a: f32, %s: f32) {
    %r = arith.addf %s, %a : f32
    linalg.yield %r : f32
  }
  return
}
func.func private @squares(%x: memref<?x?xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%j) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32>
    %w = arith.mulf %v, %v : f32
    memref.store %w, %x[%i, %j] : memref<?x?xf32>
  }
  return
}
func.func @calls(%x: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    func.call @squares(%x, %i) : (memref<?x?xf32>, index) -> ()
  }
  return
}
