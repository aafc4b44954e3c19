// out = transpose(in), a tile at a time through workgroup memory, written as gpu.module and gpu.launch_func. The tile is
// one column wider than it is read, which keeps the columns in different banks.
module attributes {gpu.container_module} {
  gpu.module @tiles {
    gpu.func @transpose_tile(%in: memref<?x?xf32>, %out: memref<?x?xf32>)
        workgroup(%tile: memref<32x33xf32, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %rows = memref.dim %in, %c0 : memref<?x?xf32>
      %cols = memref.dim %in, %c1 : memref<?x?xf32>
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %x0 = arith.muli %bx, %c32 : index
      %y0 = arith.muli %by, %c32 : index
      // 32 x 8 threads move a tile of 32 x 32.
      scf.for %k = %ty to %c32 step %c8 {
        %row = arith.addi %y0, %k : index
        %col = arith.addi %x0, %tx : index
        %row_in = arith.cmpi ult, %row, %rows : index
        %col_in = arith.cmpi ult, %col, %cols : index
        %inside = arith.andi %row_in, %col_in : i1
        scf.if %inside {
          %v = memref.load %in[%row, %col] : memref<?x?xf32>
          memref.store %v, %tile[%k, %tx] : memref<32x33xf32, #gpu.address_space<workgroup>>
        }
      }
      gpu.barrier
      scf.for %k = %ty to %c32 step %c8 {
        %row = arith.addi %x0, %k : index
        %col = arith.addi %y0, %tx : index
        %row_in = arith.cmpi ult, %row, %cols : index
        %col_in = arith.cmpi ult, %col, %rows : index
        %inside = arith.andi %row_in, %col_in : i1
        scf.if %inside {
          %v = memref.load %tile[%tx, %k] : memref<32x33xf32, #gpu.address_space<workgroup>>
          memref.store %v, %out[%row, %col] : memref<?x?xf32>
        }
      }
      gpu.return
    }
  }

  func.func @transpose(%in: memref<?x?xf32>, %out: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %rows = memref.dim %in, %c0 : memref<?x?xf32>
    %cols = memref.dim %in, %c1 : memref<?x?xf32>
    %gx = arith.ceildivui %cols, %c32 : index
    %gy = arith.ceildivui %rows, %c32 : index
    gpu.launch_func @tiles::@transpose_tile blocks in (%gx, %gy, %c1) threads in (%c32, %c8, %c1)
        args(%in : memref<?x?xf32>, %out : memref<?x?xf32>)
    return
  }
}
