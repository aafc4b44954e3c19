// out[r, :] = exp(x[r, :] - max) / sum of these. One block per row: maximum and sum are reduced by a tree in workgroup
// memory.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @softmax_kernel(%x: memref<?x?xf32>, %out: memref<?x?xf32>)
        workgroup(%part: memref<256xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c128 = arith.constant 128 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %lowest = arith.constant 0xFF800000 : f32
      %cols = memref.dim %x, %c1 : memref<?x?xf32>
      %row = gpu.block_id x
      %t = gpu.thread_id x

      %own_max = scf.for %j = %t to %cols step %c256 iter_args(%most = %lowest) -> f32 {
        %v = memref.load %x[%row, %j] : memref<?x?xf32>
        %next = arith.maxnumf %most, %v : f32
        scf.yield %next : f32
      }
      memref.store %own_max, %part[%t] : memref<256xf32, #shared>
      gpu.barrier
      scf.for %step = %c0 to %c8 step %c1 {
        %half = arith.shrui %c128, %step : index
        %takes_part = arith.cmpi ult, %t, %half : index
        scf.if %takes_part {
          %other = arith.addi %t, %half : index
          %p = memref.load %part[%t] : memref<256xf32, #shared>
          %q = memref.load %part[%other] : memref<256xf32, #shared>
          %r = arith.maxnumf %p, %q : f32
          memref.store %r, %part[%t] : memref<256xf32, #shared>
        }
        gpu.barrier
      }
      %max = memref.load %part[%c0] : memref<256xf32, #shared>
      gpu.barrier

      %own_sum = scf.for %j = %t to %cols step %c256 iter_args(%acc = %zero) -> f32 {
        %v = memref.load %x[%row, %j] : memref<?x?xf32>
        %shifted = arith.subf %v, %max : f32
        %e = math.exp %shifted : f32
        memref.store %e, %out[%row, %j] : memref<?x?xf32>
        %next = arith.addf %acc, %e : f32
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
      %scale = arith.divf %one, %sum : f32
      scf.for %j = %t to %cols step %c256 {
        %e = memref.load %out[%row, %j] : memref<?x?xf32>
        %r = arith.mulf %e, %scale : f32
        memref.store %r, %out[%row, %j] : memref<?x?xf32>
      }
      gpu.return
    }
  }

  func.func @softmax(%x: memref<?x?xf32>, %out: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    gpu.launch_func @kernels::@softmax_kernel blocks in (%rows, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<?x?xf32>, %out : memref<?x?xf32>)
    return
  }
}
