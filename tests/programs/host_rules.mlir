// Host code: the rules of offload-host-to-llvm that other programs leave out, and mathematics of the C library.
func.func @register(%x: memref<?xf32>, %device: i32) {
  gpu.set_default_device %device
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  gpu.host_unregister %any : memref<*xf32>
  return
}
func.func @allocate(%n: index, %device: memref<?xf32>) {
  %a = gpu.alloc host_shared (%n) : memref<?x4xf64>
  gpu.dealloc %a : memref<?x4xf64>
  %t = gpu.wait async
  %b, %u = gpu.alloc async [%t] () : memref<8xi8>
  %v = gpu.dealloc async [%u] %b : memref<8xi8>
  gpu.wait [%v]
  return
}
func.func @functions(%x: f32, %y: f64) -> (f32, f64, f64) {
  %a = math.erf %x : f32
  %b = math.tanh %y : f64
  %c = math.sqrt %y : f64
  return %a, %b, %c : f32, f64, f64
}
