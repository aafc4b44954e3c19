// a = b + s * c. A thread makes two runs of four elements, a block 2048 elements; for lengths that are multiples of 4.
gpu.module @kernels {
  gpu.func @triad(%b: memref<?xf32>, %c: memref<?xf32>, %a: memref<?xf32>, %s: f32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1024 = arith.constant 1024 : index
    %c2048 = arith.constant 2048 : index
    %n = memref.dim %a, %c0 : memref<?xf32>
    %block = gpu.block_id x
    %t = gpu.thread_id x
    %start = arith.muli %block, %c2048 : index
    %own = arith.muli %t, %c4 : index
    %i = arith.addi %start, %own : index
    %j = arith.addi %i, %c1024 : index
    %v = vector.broadcast %s : f32 to vector<4xf32>
    %both = arith.cmpi ult, %j, %n : index
    scf.if %both {
      %b0 = vector.load %b[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %b1 = vector.load %b[%j] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %d0 = vector.load %c[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %d1 = vector.load %c[%j] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %r0 = vector.fma %v, %d0, %b0 : vector<4xf32>
      %r1 = vector.fma %v, %d1, %b1 : vector<4xf32>
      vector.store %r0, %a[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      vector.store %r1, %a[%j] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    } else {
      %one = arith.cmpi ult, %i, %n : index
      scf.if %one {
        %b0 = vector.load %b[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
        %d0 = vector.load %c[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
        %r0 = vector.fma %v, %d0, %b0 : vector<4xf32>
        vector.store %r0, %a[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      }
    }
    gpu.return
  }
}
