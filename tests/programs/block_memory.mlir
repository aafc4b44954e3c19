// A kernel that allocates its block's memory: for golden/block_memory.kernels.check.
gpu.module @m {
  gpu.func @neighbours(%x: memref<?xf32>) kernel {
    %one = arith.constant 1 : index
    %t = gpu.thread_id x
    %s = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %a = memref.alloca() {alignment = 64 : i64} : memref<64xf32, 3>
    %v = memref.load %x[%t] : memref<?xf32>
    memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %a[%t] : memref<64xf32, 3>
    gpu.barrier
    %u = arith.xori %t, %one : index
    %w = memref.load %s[%u] : memref<64xf32, #gpu.address_space<workgroup>>
    %b = memref.load %a[%u] : memref<64xf32, 3>
    %r = arith.addf %w, %b : f32
    memref.store %r, %x[%t] : memref<?xf32>
    memref.dealloc %s : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}
