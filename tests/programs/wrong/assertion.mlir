// An assertion in a kernel, which the CPU cannot report.
gpu.module @m {
  gpu.func @k(%x: i1) kernel {
    cf.assert %x, "no"
    gpu.return
  }
}
