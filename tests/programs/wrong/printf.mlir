// Printing from a kernel, which the CPU does not do.
gpu.module @m {
  gpu.func @k(%x: i32) kernel {
    gpu.printf "%d\n", %x : i32
    gpu.return
  }
}
