// A kernel that calls a function outside of its gpu.module.
func.func @square(%v: f32) -> f32 { %r = arith.mulf %v, %v : f32 return %r : f32 }
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<?xf32>
    %w = func.call @square(%v) : (f32) -> f32
    memref.store %w, %x[%t] : memref<?xf32>
    gpu.return
  }
}
