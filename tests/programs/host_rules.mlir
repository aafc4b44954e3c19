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
func.func @spaces(%x: memref<8xf32, #gpu.address_space<workgroup>>) -> f32 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %plain = memref.memory_space_cast %x : memref<8xf32, #gpu.address_space<workgroup>> to memref<8xf32>
  %v = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
  %s = vector.reduction <add>, %v : vector<8xf32> into f32
  memref.store %s, %plain[%c0] : memref<8xf32>
  return %s : f32
}
func.func @in_a_loop(%x: memref<?xf32>, %n: index, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %memory = memref.alloca() : memref<64xf32>
    %v = memref.load %x[%k] : memref<?xf32>
    memref.store %v, %memory[%i] : memref<64xf32>
    %w = memref.load %memory[%k] : memref<64xf32>
    memref.store %w, %x[%k] : memref<?xf32>
  }
  return
}

func.func @erff(%x: f32) -> f32 {
  %y = math.erf %x : f32
  return %y : f32
}
