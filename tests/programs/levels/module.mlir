// gpu.module and gpu.launch_func.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%x: memref<?xf32>) kernel {
      %t = gpu.global_id x
      %v = memref.load %x[%t] : memref<?xf32>
      %r = arith.addf %v, %v : f32
      memref.store %r, %x[%t] : memref<?xf32>
      gpu.return
    }
  }
  func.func @run(%x: memref<?xf32>, %threads: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    gpu.launch_func @kernels::@double blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    return
  }
}
