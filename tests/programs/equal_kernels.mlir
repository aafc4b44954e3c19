// Equal loops: one kernel for those of a function, and each function has its own. For golden/equal_kernels.kernels.check.
func.func @first(%x: memref<?xf32>, %y: memref<?xf32>, %by: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.mulf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  %twice = arith.addf %by, %by : f32
  %m = memref.dim %y, %c0 : memref<?xf32>
  scf.parallel (%j) = (%c0) to (%m) step (%c1) {
    %w = memref.load %y[%j] : memref<?xf32>
    %s = arith.addf %w, %twice : f32
    memref.store %s, %y[%j] : memref<?xf32>
  }
  gpu.launch blocks(%bx, %by_, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%c0] : memref<?xf32>
    %r = arith.negf %v : f32
    memref.store %r, %x[%c0] : memref<?xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by_, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %y[%c0] : memref<?xf32>
    %r = arith.negf %v : f32
    memref.store %r, %y[%c0] : memref<?xf32>
    gpu.terminator
  }
  return
}

func.func @second(%x: memref<?xf32>, %by: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  return
}
