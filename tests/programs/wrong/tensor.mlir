// A tensor on the way into a kernel.
gpu.module @k {
  gpu.func @f(%x: tensor<4xf32>) kernel {
    gpu.return
  }
}
