// A temporary of kernels that is freed through another name: what a branch gave.
!v = memref<?xf32>
func.func @chosen(%out: !v, %which: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %out, %c0 : !v
  %t = scf.if %which -> !v {
    %a = memref.alloc(%n) : !v
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %one, %a[%i] : !v
    }
    scf.yield %a : !v
  } else {
    %b = memref.alloc(%n) : !v
    %two = arith.constant 2.0 : f32
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %two, %b[%i] : !v
    }
    scf.yield %b : !v
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %t[%i] : !v
    memref.store %v, %out[%i] : !v
  }
  memref.dealloc %t : !v
  return
}
