// What becomes a kernel, and how: for golden/to_kernels.kernels.check.
func.func @in_order(%x: memref<?xf32>, %last: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%x : memref<?xf32>) outs(%last : memref<f32>) {
  ^bb0(%a: f32, %s: f32):
    %r = arith.subf %a, %s : f32
    linalg.yield %r : f32
  }
  return
}
func.func @row(%x: memref<?xf32>, %start: index, %end: index) {
  %c3 = arith.constant 3 : index
  scf.parallel (%i) = (%start) to (%end) step (%c3) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %v : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  return
}
func.func @plane(%x: memref<?x?xf32>, %v: f32) {
  linalg.fill ins(%v : f32) outs(%x : memref<?x?xf32>)
  return
}
func.func @mapped(%x: memref<64x32xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c32) step (%c1) {
      memref.store %v, %x[%i, %j] : memref<64x32xf32>
    }
  }
  return
}
