// y = a x for a sparse matrix by rows (CSR). A block of 128 threads has 56 rows: it goes through their entries in the
// order of memory, 1024 at a time, puts the products into workgroup memory, and adds up the part of each row that is
// there with two lanes (Greathouse and Daga, "Efficient Sparse Matrix-Vector Multiplication on GPUs Using the CSR
// Storage Format", 2014). So it reads runs of 16 bytes whatever the rows' lengths are, and rows of 16 entries, as are
// measured, mostly come in one step.
#shared = #gpu.address_space<workgroup>
!products = memref<1024xf32, #shared>
!columns = memref<?xi32>
!values = memref<?xf32>
gpu.module @kernels {
  gpu.func @spmv(%starts: memref<?xi32>, %columns: !columns, %values: !values, %x: memref<?xf32>,
                 %y: memref<?xf32>) workgroup(%products: !products) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 16 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c56 = arith.constant 56 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %y, %c0 : memref<?xf32>
    %block = gpu.block_id x
    %t = gpu.thread_id x
    %row0 = arith.muli %block, %c56 : index
    %past = arith.addi %row0, %c56 : index
    %row1 = arith.minui %past, %n : index
    // Each two threads have a row; what has none has an empty one.
    %number = arith.divui %t, %c2 : index
    %lane = arith.remui %t, %c2 : index
    %own = arith.addi %row0, %number : index
    %inside = arith.cmpi ult, %own, %row1 : index
    %row = arith.minui %own, %row1 : index
    %next = arith.addi %row, %c1 : index
    %after = arith.minui %next, %row1 : index
    %first_word = memref.load %starts[%row0] : memref<?xi32>
    %last_word = memref.load %starts[%row1] : memref<?xi32>
    %from_word = memref.load %starts[%row] : memref<?xi32>
    %to_word = memref.load %starts[%after] : memref<?xi32>
    %first = arith.index_castui %first_word : i32 to index
    %last = arith.index_castui %last_word : i32 to index
    %from = arith.index_castui %from_word : i32 to index
    %to = arith.index_castui %to_word : i32 to index
    // Runs of four entries that begin at multiples of four; the arrays' last ones may be no such run.
    %over = arith.remui %first, %c4 : index
    %begin = arith.subi %first, %over : index
    %count = memref.dim %columns, %c0 : !columns
    %odd = arith.remui %count, %c4 : index
    %whole = arith.subi %count, %odd : index
    %stop = arith.minui %last, %whole : index
    %place0 = arith.muli %t, %c4 : index
    %place1 = arith.addi %place0, %c512 : index
    %mine = scf.for %step = %begin to %stop step %c1024 iter_args(%so = %zero) -> f32 {
      %at0 = arith.addi %step, %place0 : index
      %at1 = arith.addi %step, %place1 : index
      %js0, %as0 = func.call @entries(%columns, %values, %at0, %stop)
          : (!columns, !values, index, index) -> (vector<4xi32>, vector<4xf32>)
      %js1, %as1 = func.call @entries(%columns, %values, %at1, %stop)
          : (!columns, !values, index, index) -> (vector<4xi32>, vector<4xf32>)
      // All rows' parts of the step before have been read. And what has been asked for stays before what waits for it:
      // ptxas would ask for the values only once the columns are there.
      gpu.barrier
      %xs0 = func.call @gather(%x, %js0) : (!values, vector<4xi32>) -> vector<4xf32>
      %xs1 = func.call @gather(%x, %js1) : (!values, vector<4xi32>) -> vector<4xf32>
      %p0 = arith.mulf %as0, %xs0 : vector<4xf32>
      %p1 = arith.mulf %as1, %xs1 : vector<4xf32>
      vector.store %p0, %products[%place0] {alignment = 16 : i64} : !products, vector<4xf32>
      vector.store %p1, %products[%place1] {alignment = 16 : i64} : !products, vector<4xf32>
      gpu.barrier
      %step_end = arith.addi %step, %c1024 : index
      %end = arith.minui %step_end, %stop : index
      %low = arith.maxui %from, %step : index
      %high = arith.minui %to, %end : index
      %start = arith.addi %low, %lane : index
      %sum = scf.for %k = %start to %high step %c2 iter_args(%si = %so) -> f32 {
        %place = arith.subi %k, %step : index
        %p = memref.load %products[%place] : !products
        %r = arith.addf %si, %p : f32
        scf.yield %r : f32
      }
      scf.yield %sum : f32
    }
    // At most three are left.
    %left = arith.maxui %from, %whole : index
    %left0 = arith.addi %left, %lane : index
    %left1 = arith.addi %left0, %c2 : index
    %last0 = func.call @product(%columns, %values, %x, %left0, %to)
        : (!columns, !values, !values, index, index) -> f32
    %last1 = func.call @product(%columns, %values, %x, %left1, %to)
        : (!columns, !values, !values, index, index) -> f32
    %with0 = arith.addf %mine, %last0 : f32
    %own_sum = arith.addf %with0, %last1 : f32
    %all = gpu.subgroup_reduce add %own_sum cluster(size = 2) : (f32) -> f32
    %lead = arith.cmpi eq, %lane, %c0 : index
    %writes = arith.andi %lead, %inside : i1
    scf.if %writes {
      memref.store %all, %y[%row] : memref<?xf32>
    }
    gpu.return
  }
  // Four entries, or zeros from `stop` on.
  func.func private @entries(%columns: !columns, %values: !values, %at: index, %stop: index)
      -> (vector<4xi32>, vector<4xf32>) {
    %no_columns = arith.constant dense<0> : vector<4xi32>
    %no_values = arith.constant dense<0.0> : vector<4xf32>
    %some = arith.cmpi ult, %at, %stop : index
    %js, %as = scf.if %some -> (vector<4xi32>, vector<4xf32>) {
      %j = vector.load %columns[%at] {alignment = 16 : i64} : !columns, vector<4xi32>
      %a = vector.load %values[%at] {alignment = 16 : i64} : !values, vector<4xf32>
      scf.yield %j, %a : vector<4xi32>, vector<4xf32>
    } else {
      scf.yield %no_columns, %no_values : vector<4xi32>, vector<4xf32>
    }
    return %js, %as : vector<4xi32>, vector<4xf32>
  }
  // Of one entry, or zero from `stop` on.
  func.func private @product(%columns: !columns, %values: !values, %x: !values, %at: index, %stop: index) -> f32 {
    %zero = arith.constant 0.0 : f32
    %some = arith.cmpi ult, %at, %stop : index
    %product = scf.if %some -> f32 {
      %c = memref.load %columns[%at] : !columns
      %a = memref.load %values[%at] : !values
      %j = arith.index_castui %c : i32 to index
      %b = memref.load %x[%j] : !values
      %p = arith.mulf %a, %b : f32
      scf.yield %p : f32
    } else {
      scf.yield %zero : f32
    }
    return %product : f32
  }
  func.func private @gather(%x: !values, %places: vector<4xi32>) -> vector<4xf32> {
    %p0 = vector.extract %places[0] : i32 from vector<4xi32>
    %p1 = vector.extract %places[1] : i32 from vector<4xi32>
    %p2 = vector.extract %places[2] : i32 from vector<4xi32>
    %p3 = vector.extract %places[3] : i32 from vector<4xi32>
    %i0 = arith.index_castui %p0 : i32 to index
    %i1 = arith.index_castui %p1 : i32 to index
    %i2 = arith.index_castui %p2 : i32 to index
    %i3 = arith.index_castui %p3 : i32 to index
    %x0 = memref.load %x[%i0] : !values
    %x1 = memref.load %x[%i1] : !values
    %x2 = memref.load %x[%i2] : !values
    %x3 = memref.load %x[%i3] : !values
    %xs = vector.from_elements %x0, %x1, %x2, %x3 : vector<4xf32>
    return %xs : vector<4xf32>
  }
}
