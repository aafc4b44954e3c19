// The kernel does not exist.
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @f() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@gone blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}
