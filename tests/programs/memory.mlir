// Copies and fills: contiguous ones are one call, others name sizes and strides; the layouts are known or not.
!any = memref<?x?xf32, strided<[?, ?], offset: ?>>
func.func @copies(%x: !any, %y: !any, %a: memref<?xf64>, %b: memref<?xf64>) {
  gpu.memcpy %x, %y : !any, !any
  gpu.memcpy %a, %b : memref<?xf64>, memref<?xf64>
  return
}
func.func @fills(%x: !any, %v: f32, %a: memref<?xi8>, %c: i8, %z: memref<4xcomplex<f64>>, %re: f64) {
  gpu.memset %x, %v : !any, f32
  gpu.memset %a, %c : memref<?xi8>, i8
  %w = complex.create %re, %re : complex<f64>
  gpu.memset %z, %w : memref<4xcomplex<f64>>, complex<f64>
  return
}
