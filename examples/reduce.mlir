// out[b] = sum of the b-th run of 256 elements of x: one block per run, added up by gpu.all_reduce. The caller adds the
// partial sums, or calls it again on them.
func.func @block_sums(%x: memref<?xf32>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %blocks = arith.ceildivui %n, %c256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %zero = arith.constant 0.0 : f32
    %start = arith.muli %bx, %c256 : index
    %i = arith.addi %start, %tx : index
    %inside = arith.cmpi ult, %i, %n : index
    %v = scf.if %inside -> f32 {
      %xi = memref.load %x[%i] : memref<?xf32>
      scf.yield %xi : f32
    } else {
      scf.yield %zero : f32
    }
    %sum = gpu.all_reduce add %v uniform {} : (f32) -> f32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      memref.store %sum, %out[%bx] : memref<?xf32>
    }
    gpu.terminator
  }
  return
}
