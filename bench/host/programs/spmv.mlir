// y = A x, A in compressed rows (CSR). One thread per row.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @spmv_kernel(%starts: memref<?xi32>, %columns: memref<?xi32>, %values: memref<?xf32>,
                          %x: memref<?xf32>, %y: memref<?xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant 0.0 : f32
      %rows = memref.dim %y, %c0 : memref<?xf32>
      %block = gpu.block_id x
      %thread = gpu.thread_id x
      %start = arith.muli %block, %c256 : index
      %row = arith.addi %start, %thread : index
      %inside = arith.cmpi ult, %row, %rows : index
      scf.if %inside {
        %after = arith.addi %row, %c1 : index
        %first_i32 = memref.load %starts[%row] : memref<?xi32>
        %last_i32 = memref.load %starts[%after] : memref<?xi32>
        %first = arith.index_cast %first_i32 : i32 to index
        %last = arith.index_cast %last_i32 : i32 to index
        %sum = scf.for %k = %first to %last step %c1 iter_args(%acc = %zero) -> f32 {
          %column_i32 = memref.load %columns[%k] : memref<?xi32>
          %column = arith.index_cast %column_i32 : i32 to index
          %v = memref.load %values[%k] : memref<?xf32>
          %xk = memref.load %x[%column] : memref<?xf32>
          %next = math.fma %v, %xk, %acc : f32
          scf.yield %next : f32
        }
        memref.store %sum, %y[%row] : memref<?xf32>
      }
      gpu.return
    }
  }

  func.func @spmv(%starts: memref<?xi32>, %columns: memref<?xi32>, %values: memref<?xf32>, %x: memref<?xf32>,
                  %y: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %rows = memref.dim %y, %c0 : memref<?xf32>
    %blocks = arith.ceildivui %rows, %c256 : index
    gpu.launch_func @kernels::@spmv_kernel blocks in (%blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%starts : memref<?xi32>, %columns : memref<?xi32>, %values : memref<?xf32>, %x : memref<?xf32>,
             %y : memref<?xf32>)
    return
  }
}
