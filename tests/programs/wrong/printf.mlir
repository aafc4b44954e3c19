// A printf whose format takes another kind of number.
gpu.module @m {
  gpu.func @k(%x: f32) kernel {
    gpu.printf "%d\n", %x : f32
    gpu.return
  }
}
