// One kernel over a static array, with an index argument, a called function and a denormal's worth of arithmetic.
module attributes {gpu.container_module} {
  gpu.module @m {
    func.func private @scaled(%v: f32, %f: f32) -> f32 {
      %r = arith.mulf %v, %f : f32
      %s = arith.addf %r, %f : f32
      return %s : f32
    }
    gpu.func @k(%x: memref<4x16xf32>, %n: index, %f: f32) kernel {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %v = memref.load %x[%b, %t] : memref<4x16xf32>
      %i = arith.index_cast %n : index to i32
      %g = arith.sitofp %i : i32 to f32
      %r = arith.addf %v, %g : f32
      %s = func.call @scaled(%r, %f) : (f32, f32) -> f32
      memref.store %s, %x[%b, %t] : memref<4x16xf32>
      gpu.return
    }
  }
  func.func @run(%x: memref<4x16xf32>, %n: index, %f: f32) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @m::@k blocks in (%c4, %c1, %c1) threads in (%c16, %c1, %c1)
      args(%x : memref<4x16xf32>, %n : index, %f : f32)
    return
  }
}
