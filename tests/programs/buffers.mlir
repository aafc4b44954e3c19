// Memory that kernels use, followed through views, choices, loops and calls; globals and memory on the stack.
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" @counter : memref<4xf32> = dense<0.0>
func.func private @double(%x: memref<4xf32>) -> memref<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %a = memref.load %x[%i] : memref<4xf32>
    %r = arith.addf %a, %a : f32
    memref.store %r, %x[%i] : memref<4xf32>
  }
  return %x : memref<4xf32>
}
func.func @pick(%which: i1, %out: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloca() : memref<4xf32>
  %t = memref.get_global @table : memref<4xf32>
  memref.copy %t, %a : memref<4xf32> to memref<4xf32>
  memref.copy %t, %b : memref<4xf32> to memref<4xf32>
  memref.store %one, %b[%c0] : memref<4xf32>
  %x = arith.select %which, %a, %b : memref<4xf32>
  %y = func.call @double(%x) : (memref<4xf32>) -> memref<4xf32>
  memref.copy %y, %out : memref<4xf32> to memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  return
}
func.func @count(%n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %g = memref.get_global @counter : memref<4xf32>
  %t = memref.get_global @table : memref<4xf32>
  scf.for %k = %c0 to %n step %c1 {
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %a = memref.load %g[%i] : memref<4xf32>
    %b = memref.load %t[%i] : memref<4xf32>
    %r = arith.addf %a, %b : f32
    memref.store %r, %g[%i] : memref<4xf32>
  }
  }
  %r = memref.load %g[%c1] : memref<4xf32>
  return %r : f32
}
func.func @grow(%n: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc(%n) : memref<?xf32>
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%z : f32) outs(%t : memref<?xf32>)
  %last = scf.for %k = %c0 to %n step %c1 iter_args(%cur = %t) -> memref<?xf32> {
    %new = memref.alloc(%n) : memref<?xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %a = memref.load %cur[%i] : memref<?xf32>
      %r = arith.addf %a, %one : f32
      memref.store %r, %new[%i] : memref<?xf32>
    }
    memref.dealloc %cur : memref<?xf32>
    scf.yield %new : memref<?xf32>
  }
  memref.copy %last, %out : memref<?xf32> to memref<?xf32>
  memref.dealloc %last : memref<?xf32>
  return
}
