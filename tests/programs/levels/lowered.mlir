// A kernel that is in the LLVM dialect already: parameters are expanded descriptors, ids are the gpu dialect's.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @double(%base: !llvm.ptr, %x: !llvm.ptr, %offset: i64, %size: i64, %stride: i64) attributes {gpu.kernel} {
      %b = gpu.block_id x
      %i = arith.index_cast %b : index to i64
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %r = llvm.fadd %v, %v : f32
      llvm.store %r, %p : f32, !llvm.ptr
      llvm.return
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
