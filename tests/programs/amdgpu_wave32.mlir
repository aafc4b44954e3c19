// targets: rocdl:gfx1100
// What AMD's GPUs with waves of 32 threads have of their own, and where their lowering differs.
gpu.module @wave32 {
  gpu.func @product(%x: memref<?xf16>, %y: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = vector.load %x[%c0] : memref<?xf16>, vector<16xf16>
    %zero = arith.constant dense<0.0> : vector<8xf32>
    %d = amdgpu.wmma 16x16x16 %a * %a + %zero : vector<16xf16>, vector<16xf16>, vector<8xf32>
    vector.store %d, %y[%c0] : memref<?xf32>, vector<8xf32>
    gpu.return
  }
  gpu.func @buffers(%x: memref<64xf32>, %i: i32) kernel {
    %v = amdgpu.raw_buffer_load {boundsCheck = true} %x[%i] : memref<64xf32>, i32 -> f32
    amdgpu.raw_buffer_atomic_fmax {boundsCheck = true} %v -> %x[%i] : f32 -> memref<64xf32>, i32
    amdgpu.raw_buffer_store {boundsCheck = true} %v -> %x[%i] : f32 -> memref<64xf32>, i32
    gpu.return
  }
  gpu.func @order() kernel {
    amdgpu.lds_barrier
    amdgpu.memory_counter_wait load(0)
    gpu.return
  }
}
