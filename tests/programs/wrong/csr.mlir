// Sparse matrices cannot have values of every type.
func.func @f(%r: memref<?xindex>, %c: memref<?xindex>, %v: memref<?xi16>, %n: index) {
  %t0 = gpu.wait async
  %s, %t1 = gpu.create_csr async [%t0] %n, %n, %n, %r, %c, %v : memref<?xindex>, memref<?xindex>, memref<?xi16>
  gpu.wait [%t1]
  return
}
