// Sparse matrices are not supported.
func.func @f(%r: memref<?xindex>, %c: memref<?xindex>, %v: memref<?xf64>, %n: index) {
  %t0 = gpu.wait async
  %s, %t1 = gpu.create_csr async [%t0] %n, %n, %n, %r, %c, %v : memref<?xindex>, memref<?xindex>, memref<?xf64>
  gpu.wait [%t1]
  return
}
