// out = transpose(x). 32 x 8 threads move a tile of 32 x 32 through workgroup memory, so that both sides are read and
// written along rows; the tile has a column too many, which keeps a GPU's banks apart.
#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @transpose_kernel(%x: memref<?x?xf32>, %out: memref<?x?xf32>)
        workgroup(%tile: memref<32x33xf32, #shared>) kernel
        attributes {known_block_size = array<i32: 32, 8, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %rows = memref.dim %x, %c0 : memref<?x?xf32>
      %cols = memref.dim %x, %c1 : memref<?x?xf32>
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %x0 = arith.muli %bx, %c32 : index
      %y0 = arith.muli %by, %c32 : index
      %col = arith.addi %x0, %tx : index
      %col_in = arith.cmpi ult, %col, %cols : index
      scf.for %k = %c0 to %c32 step %c8 {
        %down = arith.addi %ty, %k : index
        %row = arith.addi %y0, %down : index
        %row_in = arith.cmpi ult, %row, %rows : index
        %inside = arith.andi %row_in, %col_in : i1
        scf.if %inside {
          %v = memref.load %x[%row, %col] : memref<?x?xf32>
          memref.store %v, %tile[%down, %tx] : memref<32x33xf32, #shared>
        }
      }
      gpu.barrier
      %out_col = arith.addi %y0, %tx : index
      %out_col_in = arith.cmpi ult, %out_col, %rows : index
      scf.for %k = %c0 to %c32 step %c8 {
        %down = arith.addi %ty, %k : index
        %row = arith.addi %x0, %down : index
        %row_in = arith.cmpi ult, %row, %cols : index
        %inside = arith.andi %row_in, %out_col_in : i1
        scf.if %inside {
          %v = memref.load %tile[%tx, %down] : memref<32x33xf32, #shared>
          memref.store %v, %out[%row, %out_col] : memref<?x?xf32>
        }
      }
      gpu.return
    }
  }

  func.func @transpose(%x: memref<?x?xf32>, %out: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %gx = arith.ceildivui %cols, %c32 : index
    %gy = arith.ceildivui %rows, %c32 : index
    gpu.launch_func @kernels::@transpose_kernel blocks in (%gx, %gy, %c1) threads in (%c32, %c8, %c1)
        args(%x : memref<?x?xf32>, %out : memref<?x?xf32>)
    return
  }
}
