// y = a x for a sparse matrix by rows (CSR); eight lanes share a row.
gpu.module @kernels {
  gpu.func @spmv(%starts: memref<?xi32>, %columns: memref<?xi32>, %values: memref<?xf32>, %x: memref<?xf32>,
                 %y: memref<?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %y, %c0 : memref<?xf32>
    %i = gpu.global_id x
    %row = arith.divui %i, %c8 : index
    %lane = arith.remui %i, %c8 : index
    %inside = arith.cmpi ult, %row, %n : index
    %own = scf.if %inside -> f32 {
      %after = arith.addi %row, %c1 : index
      %from = memref.load %starts[%row] : memref<?xi32>
      %to = memref.load %starts[%after] : memref<?xi32>
      %first = arith.index_castui %from : i32 to index
      %end = arith.index_castui %to : i32 to index
      %start = arith.addi %first, %lane : index
      %sum = scf.for %k = %start to %end step %c8 iter_args(%so = %zero) -> f32 {
        %c = memref.load %columns[%k] : memref<?xi32>
        %a = memref.load %values[%k] : memref<?xf32>
        %j = arith.index_castui %c : i32 to index
        %b = memref.load %x[%j] : memref<?xf32>
        %r = math.fma %a, %b, %so : f32
        scf.yield %r : f32
      }
      scf.yield %sum : f32
    } else {
      scf.yield %zero : f32
    }
    %all = gpu.subgroup_reduce add %own cluster(size = 8) : (f32) -> f32
    %lead = arith.cmpi eq, %lane, %c0 : index
    %writes = arith.andi %lead, %inside : i1
    scf.if %writes {
      memref.store %all, %y[%row] : memref<?xf32>
    }
    gpu.return
  }
}
