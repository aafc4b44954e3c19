// Kernels beside host code, marked for one vendor each, and what they use by name.
module {
  llvm.mlir.global external @block_memory() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @table(dense<[3.0, 5.0]> : tensor<2xf32>) : !llvm.array<2 x f32>
  llvm.func internal @scaled(%x: f32) -> f32 {
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %factor = llvm.load %table : !llvm.ptr -> f32
    %result = llvm.fmul %x, %factor : f32
    llvm.return %result : f32
  }
  llvm.func internal @kept() -> !llvm.ptr<3> {
    %memory = llvm.mlir.addressof @block_memory : !llvm.ptr<3>
    llvm.return %memory : !llvm.ptr<3>
  }
  llvm.func @by_attribute(%out: !llvm.ptr, %x: f32) attributes {nvvm.kernel} {
    %y = llvm.call @scaled(%x) : (f32) -> f32
    llvm.store %y, %out : f32, !llvm.ptr
    llvm.return
  }
  llvm.func ptx_kernelcc @by_convention(%x: f32) {
    %memory = llvm.call @kept() : () -> !llvm.ptr<3>
    llvm.store %x, %memory : f32, !llvm.ptr<3>
    llvm.return
  }
  llvm.func @host(%x: f32) -> f32 {
    %y = llvm.call @scaled(%x) : (f32) -> f32
    llvm.return %y : f32
  }
}
