// Programs that say memref.alloc for what kernels use: temporaries, memory that the host uses too, copies, choices.
#id = affine_map<(i) -> (i)>
!v = memref<?xf32>
func.func private @add_one(%x: !v, %y: !v) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !v) outs(%y : !v) {
  ^bb0(%a: f32, %b: f32):
    %one = arith.constant 1.0 : f32
    %r = arith.addf %a, %one : f32
    linalg.yield %r : f32
  }
  return
}
// out = 2 (x + 3), through a temporary that kernels alone use.
func.func @between(%x: !v, %out: !v) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !v
  %t = memref.alloc(%n) : !v
  %three = arith.constant 3.0 : f32
  linalg.fill ins(%three : f32) outs(%t : !v)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : !v) outs(%t : !v) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : !v) outs(%out : !v) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }
  memref.dealloc %t : !v
  return
}
// The host writes the temporary, a kernel changes it, the host reads it.
func.func @shared(%n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %t = memref.alloc(%n) : !v
  scf.for %i = %c0 to %n step %c1 {
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    memref.store %f, %t[%i] : !v
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %t[%i] : !v
    %r = arith.mulf %a, %two : f32
    memref.store %r, %t[%i] : !v
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
    %a = memref.load %t[%i] : !v
    %r = arith.addf %s, %a : f32
    scf.yield %r : f32
  }
  memref.dealloc %t : !v
  return %sum : f32
}
// Copies into and out of a temporary of kernels.
func.func @copied(%x: !v, %out: !v) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %n = memref.dim %x, %c0 : !v
  %t = memref.alloc(%n) : !v
  memref.copy %x, %t : !v to !v
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %t[%i] : !v
    %r = arith.mulf %a, %two : f32
    memref.store %r, %t[%i] : !v
  }
  memref.copy %t, %out : !v to !v
  memref.dealloc %t : !v
  return
}
// Memory on the stack, and a global of the host, as kernels see them.
memref.global "private" @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
func.func @elsewhere(%out: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloca() : memref<4xf32>
  %g = memref.get_global @table : memref<4xf32>
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %a = memref.load %g[%i] : memref<4xf32>
    memref.store %a, %t[%i] : memref<4xf32>
  }
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %a = memref.load %t[%i] : memref<4xf32>
    %r = arith.addf %a, %a : f32
    memref.store %r, %out[%i] : memref<4xf32>
  }
  return
}
