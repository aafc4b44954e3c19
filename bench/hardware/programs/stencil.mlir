// out = center * x + side * (its four neighbours) inside, for widths that are multiples of 4; the edge of out stays. A
// thread makes four elements of a row.
gpu.module @kernels {
  gpu.func @stencil(%x: memref<?x?xf32>, %out: memref<?x?xf32>, %center: f32, %side: f32) kernel
      attributes {known_block_size = array<i32: 32, 8, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant 0.0 : f32
    %h = memref.dim %x, %c0 : memref<?x?xf32>
    %w = memref.dim %x, %c1 : memref<?x?xf32>
    %gx = gpu.global_id x
    %i = gpu.global_id y
    %j = arith.muli %gx, %c4 : index
    %last = arith.subi %h, %c1 : index
    %above = arith.cmpi ult, %i, %last : index
    %below = arith.cmpi ugt, %i, %c0 : index
    %in_width = arith.cmpi ult, %j, %w : index
    %rows = arith.andi %above, %below : i1
    %inside = arith.andi %rows, %in_width : i1
    scf.if %inside {
      %up = arith.subi %i, %c1 : index
      %down = arith.addi %i, %c1 : index
      %n = vector.load %x[%up, %j] {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
      %m = vector.load %x[%i, %j] {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
      %s = vector.load %x[%down, %j] {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
      %next = arith.addi %j, %c4 : index
      %has_left = arith.cmpi ugt, %j, %c0 : index
      %has_right = arith.cmpi ult, %next, %w : index
      %left = scf.if %has_left -> f32 {
        %k = arith.subi %j, %c1 : index
        %v = memref.load %x[%i, %k] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      %right = scf.if %has_right -> f32 {
        %v = memref.load %x[%i, %next] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      %l = vector.broadcast %left : f32 to vector<1xf32>
      %r = vector.broadcast %right : f32 to vector<1xf32>
      %west = vector.shuffle %l, %m [0, 1, 2, 3] : vector<1xf32>, vector<4xf32>
      %east = vector.shuffle %m, %r [1, 2, 3, 4] : vector<4xf32>, vector<1xf32>
      %a = arith.addf %n, %s : vector<4xf32>
      %b = arith.addf %west, %east : vector<4xf32>
      %around = arith.addf %a, %b : vector<4xf32>
      %cv = vector.broadcast %center : f32 to vector<4xf32>
      %sv = vector.broadcast %side : f32 to vector<4xf32>
      %far = arith.mulf %sv, %around : vector<4xf32>
      %all = vector.fma %cv, %m, %far : vector<4xf32>
      %first = vector.extract %all[0] : f32 from vector<4xf32>
      %end = vector.extract %all[3] : f32 from vector<4xf32>
      %kept_first = arith.select %has_left, %first, %zero : f32
      %kept_end = arith.select %has_right, %end, %zero : f32
      %t = vector.insert %kept_first, %all[0] : f32 into vector<4xf32>
      %u = vector.insert %kept_end, %t[3] : f32 into vector<4xf32>
      vector.store %u, %out[%i, %j] {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
    }
    gpu.return
  }
}
