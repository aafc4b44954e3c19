// y = exp(x - max) / sum of that, row by row: a thread for each row.
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %max = scf.for %j = %c0 to %columns step %c1 iter_args(%so_far = %lowest) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %larger = arith.maximumf %so_far, %v : f32
      scf.yield %larger : f32
    }
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%so_far = %zero) -> f32 {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %below = arith.subf %v, %max : f32
      %e = math.exp %below : f32
      memref.store %e, %y[%i, %j] : memref<?x?xf32>
      %more = arith.addf %so_far, %e : f32
      scf.yield %more : f32
    }
    scf.for %j = %c0 to %columns step %c1 {
      %e = memref.load %y[%i, %j] : memref<?x?xf32>
      %share = arith.divf %e, %sum : f32
      memref.store %share, %y[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
