// linalg inside a kernel: each thread fills a row of its own.
module attributes {gpu.container_module} {
  gpu.module @rows {
    gpu.func @fill(%x: memref<?x8xf32>, %v: f32) kernel {
      %t = gpu.thread_id x
      %row = memref.subview %x[%t, 0][1, 8][1, 1] : memref<?x8xf32> to memref<8xf32, strided<[1], offset: ?>>
      linalg.fill ins(%v : f32) outs(%row : memref<8xf32, strided<[1], offset: ?>>)
      gpu.return
    }
  }
  func.func @run(%x: memref<?x8xf32>, %v: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?x8xf32>
    gpu.launch_func @rows::@fill blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1) args(%x : memref<?x8xf32>, %v : f32)
    return
  }
}
