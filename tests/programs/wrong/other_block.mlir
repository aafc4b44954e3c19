// A launch with another block than its kernel is declared to have.
gpu.module @m {
  gpu.func @k() kernel attributes {known_block_size = array<i32: 16, 2, 1>} {
    gpu.return
  }
}
func.func @f() {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c1 = arith.constant 1 : index
  gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c16, %c8, %c1)
  return
}
