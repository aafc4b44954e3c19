// out = center * x + side * (its four neighbours), inside a border that is left alone. One thread per cell.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @stencil_kernel(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %center: f32, %side: f32) kernel
        attributes {known_block_size = array<i32: 32, 8, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %rows = memref.dim %x, %c0 : memref<?x?xf32>
      %cols = memref.dim %x, %c1 : memref<?x?xf32>
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %x0 = arith.muli %bx, %c32 : index
      %y0 = arith.muli %by, %c8 : index
      // The cell's upper left neighbour, so that cells are counted without the border.
      %left = arith.addi %x0, %tx : index
      %up = arith.addi %y0, %ty : index
      %j = arith.addi %left, %c1 : index
      %i = arith.addi %up, %c1 : index
      %right = arith.addi %left, %c2 : index
      %down = arith.addi %up, %c2 : index
      %row_in = arith.cmpi ult, %down, %rows : index
      %col_in = arith.cmpi ult, %right, %cols : index
      %inside = arith.andi %row_in, %col_in : i1
      scf.if %inside {
        %v = memref.load %x[%i, %j] : memref<?x?xf32>
        %n = memref.load %x[%up, %j] : memref<?x?xf32>
        %s = memref.load %x[%down, %j] : memref<?x?xf32>
        %w = memref.load %x[%i, %left] : memref<?x?xf32>
        %e = memref.load %x[%i, %right] : memref<?x?xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %around = arith.addf %ns, %we : f32
        %own = arith.mulf %center, %v : f32
        %r = math.fma %side, %around, %own : f32
        memref.store %r, %out[%i, %j] : memref<?x?xf32>
      }
      gpu.return
    }
  }

  func.func @stencil(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %center: f32, %side: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %rows_inside = arith.subi %rows, %c2 : index
    %cols_inside = arith.subi %cols, %c2 : index
    %gx = arith.ceildivui %cols_inside, %c32 : index
    %gy = arith.ceildivui %rows_inside, %c8 : index
    gpu.launch_func @kernels::@stencil_kernel blocks in (%gx, %gy, %c1) threads in (%c32, %c8, %c1)
        args(%x : memref<?x?xf32>, %out : memref<?x?xf32>, %center : f32, %side : f32)
    return
  }
}
