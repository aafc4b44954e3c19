// Results that host code may use as well, and one that it may not: shared, alone, either, filled by a kernel.
func.func @shared(%n: index) -> memref<?xf32> {
  %x = gpu.alloc host_shared (%n) : memref<?xf32>
  return %x : memref<?xf32>
}
func.func @alone(%n: index) -> memref<?xf32> {
  %t = gpu.wait async
  %x, %t1 = gpu.alloc async [%t] (%n) : memref<?xf32>
  gpu.wait [%t1]
  return %x : memref<?xf32>
}
func.func @either(%n: index, %which: i1) -> memref<?xf32> {
  %x = gpu.alloc host_shared (%n) : memref<?xf32>
  %y = gpu.alloc (%n) : memref<?xf32>
  %z = arith.select %which, %x, %y : memref<?xf32>
  %w = arith.select %which, %y, %x : memref<?xf32>
  gpu.dealloc %w : memref<?xf32>
  return %z : memref<?xf32>
}
func.func @same(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %two = arith.constant 2.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %two, %x[%i] : memref<?xf32>
  }
  return %x : memref<?xf32>
}
