// What gpu-kernel-outlining leaves of a function with two launches: two modules, whose kernels have one name.
module attributes {gpu.container_module} {
  gpu.module @f_kernel {
    gpu.func @f_kernel() kernel { gpu.return }
  }
  gpu.module @f_kernel_0 {
    gpu.func @f_kernel() kernel { gpu.return }
  }
  func.func @f() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @f_kernel::@f_kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @f_kernel_0::@f_kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  // A private function whose name is also the math library's, whose function it would take the place of.
  func.func private @expf(%x: f32) -> f32 {
    %r = math.exp %x : f32
    return %r : f32
  }
  func.func @g(%x: f32) -> f32 {
    %r = call @expf(%x) : (f32) -> f32
    return %r : f32
  }
  // Kernels of compilers that lower to the LLVM dialect themselves, marked for one vendor.
  gpu.module @marked {
    llvm.func @by_attribute() attributes {rocdl.kernel} { llvm.return }
    llvm.func ptx_kernelcc @by_convention() { llvm.return }
    llvm.func @helper() { llvm.return }
  }
}
