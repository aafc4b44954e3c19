// Five small kernels of two functions, with a function that two of them call, and one whose module the author names.
func.func private @twice(%v: f32) -> f32 {
  %r = arith.addf %v, %v : f32
  return %r : f32
}

func.func @first(%x: memref<?xf32>, %by: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = func.call @twice(%v) : (f32) -> f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.addf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  gpu.launch blocks(%bx, %by_, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) module(@mine) {
    %v = memref.load %x[%c0] : memref<?xf32>
    %r = arith.negf %v : f32
    memref.store %r, %x[%c0] : memref<?xf32>
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
    %r = arith.mulf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = func.call @twice(%v) : (f32) -> f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.subf %v, %by : f32
    memref.store %r, %x[%i] : memref<?xf32>
  }
  return
}
