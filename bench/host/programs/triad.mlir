// a = b + s * c: memory bandwidth and nothing else. One thread per element.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @triad_kernel(%b: memref<?xf32>, %c: memref<?xf32>, %a: memref<?xf32>, %s: f32) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c256 = arith.constant 256 : index
      %n = memref.dim %a, %c0 : memref<?xf32>
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %start = arith.muli %block, %c256 : index
      %i = arith.addi %start, %thread : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %bi = memref.load %b[%i] : memref<?xf32>
        %ci = memref.load %c[%i] : memref<?xf32>
        %ai = math.fma %s, %ci, %bi : f32
        memref.store %ai, %a[%i] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @triad(%b: memref<?xf32>, %c: memref<?xf32>, %a: memref<?xf32>, %s: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %n = memref.dim %a, %c0 : memref<?xf32>
    %blocks = arith.ceildivui %n, %c256 : index
    gpu.launch_func @kernels::@triad_kernel blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%b : memref<?xf32>, %c : memref<?xf32>, %a : memref<?xf32>, %s : f32)
    return
  }
}
