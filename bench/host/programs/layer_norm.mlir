// out[r, :] = (x[r, :] - mean) / sqrt(variance + epsilon) * gamma + beta. One block per row; mean and variance are
// reduced one after the other by a tree in workgroup memory.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @layer_norm_kernel(%x: memref<?x?xf32>, %gamma: memref<?xf32>, %beta: memref<?xf32>,
                                %out: memref<?x?xf32>, %epsilon: f32)
        workgroup(%part: memref<256xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %cols = memref.dim %x, %c1 : memref<?x?xf32>
      %cols_i32 = arith.index_cast %cols : index to i32
      %count = arith.sitofp %cols_i32 : i32 to f32
      %share = arith.divf %one, %count : f32
      %row = gpu.block_id x
      %t = gpu.thread_id x

      %own_sum = scf.for %j = %t to %cols step %c256 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %x[%row, %j] : memref<?x?xf32>
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      }
      memref.store %own_sum, %part[%t] : memref<256xf32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %half = arith.shrui %c128, %step : index
        %takes_part = arith.cmpi ult, %t, %half : index
        scf.if %takes_part {
          %other = arith.addi %t, %half : index
          %p = memref.load %part[%t] : memref<256xf32, #shared>
          %q = memref.load %part[%other] : memref<256xf32, #shared>
          %r = arith.addf %p, %q : f32
          memref.store %r, %part[%t] : memref<256xf32, #shared>
        }
        gpu.barrier
      }
      %sum = memref.load %part[%c0] : memref<256xf32, #shared>
      %mean = arith.mulf %sum, %share : f32
      gpu.barrier

      %own_squares = scf.for %j = %t to %cols step %c256 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %x[%row, %j] : memref<?x?xf32>
        %d = arith.subf %v, %mean : f32
        %next = math.fma %d, %d, %acc : f32
        scf.yield %next : f32
      }
      memref.store %own_squares, %part[%t] : memref<256xf32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %half = arith.shrui %c128, %step : index
        %takes_part = arith.cmpi ult, %t, %half : index
        scf.if %takes_part {
          %other = arith.addi %t, %half : index
          %p = memref.load %part[%t] : memref<256xf32, #shared>
          %q = memref.load %part[%other] : memref<256xf32, #shared>
          %r = arith.addf %p, %q : f32
          memref.store %r, %part[%t] : memref<256xf32, #shared>
        }
        gpu.barrier
      }
      %squares = memref.load %part[%c0] : memref<256xf32, #shared>
      %variance = arith.mulf %squares, %share : f32
      %positive = arith.addf %variance, %epsilon : f32
      %deviation = math.sqrt %positive : f32
      %scale = arith.divf %one, %deviation : f32
      scf.for %j = %t to %cols step %c256 {
        %v = memref.load %x[%row, %j] : memref<?x?xf32>
        %g = memref.load %gamma[%j] : memref<?xf32>
        %b = memref.load %beta[%j] : memref<?xf32>
        %d = arith.subf %v, %mean : f32
        %normal = arith.mulf %d, %scale : f32
        %r = math.fma %normal, %g, %b : f32
        memref.store %r, %out[%row, %j] : memref<?x?xf32>
      }
      gpu.return
    }
  }

  func.func @layer_norm(%x: memref<?x?xf32>, %gamma: memref<?xf32>, %beta: memref<?xf32>, %out: memref<?x?xf32>,
                        %epsilon: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    gpu.launch_func @kernels::@layer_norm_kernel blocks in (%rows, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?x?xf32>, %gamma : memref<?xf32>, %beta : memref<?xf32>, %out : memref<?x?xf32>,
             %epsilon : f32)
    return
  }
}
