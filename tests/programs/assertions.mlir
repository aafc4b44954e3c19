// Assertions in host code: directly, in a function that is called, beside work on streams.
func.func @check(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %ok = arith.cmpi sgt, %x, %zero : i32
  cf.assert %ok, "x must be positive"
  return %x : i32
}
func.func private @deep(%x: i32) {
  %r = func.call @check(%x) : (i32) -> i32
  return
}
func.func @indirect(%data: memref<4xi32>, %x: i32) {
  %c0 = arith.constant 0 : index
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<4xi32>
  %t2 = gpu.memset async [%t1] %d, %x : memref<4xi32>, i32
  func.call @deep(%x) : (i32) -> ()
  %t3 = gpu.memcpy async [%t2] %data, %d : memref<4xi32>, memref<4xi32>
  %t4 = gpu.dealloc async [%t3] %d : memref<4xi32>
  gpu.wait [%t4]
  return
}
// Fails with memory of both kinds and operands in hand.
func.func @holding(%x: i32) {
  %c8 = arith.constant 8 : index
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<8xf32>
  %shared = gpu.alloc host_shared () : memref<4xi32>
  %v, %t2 = gpu.create_dn_tensor async [%t1] %d, %c8 : index into memref<8xf32>
  func.call @deep(%x) : (i32) -> ()
  %t3 = gpu.destroy_dn_tensor async [%t2] %v
  gpu.dealloc %shared : memref<4xi32>
  %t4 = gpu.dealloc async [%t3] %d : memref<8xf32>
  gpu.wait [%t4]
  return
}
func.func @speaking(%x: memref<?xi32>, %most: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xi32>
    %few = arith.cmpi sle, %v, %most : i32
    cf.assert %few, "too many"
    gpu.printf "%d\n", %v : i32
    memref.store %most, %x[%i] : memref<?xi32>
  }
  return
}
