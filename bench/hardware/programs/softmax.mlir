// out[r, :] = exp(x[r, :] - max) / sum of these, rows of 4096. A block keeps a row in registers: 256 threads, four runs
// of four elements each.
gpu.module @kernels {
  gpu.func @softmax(%x: memref<?x4096xf32>, %out: memref<?x4096xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 8 : i32} {
    %c4 = arith.constant 4 : index
    %c1024 = arith.constant 1024 : index
    %c2048 = arith.constant 2048 : index
    %c3072 = arith.constant 3072 : index
    %one = arith.constant 1.0 : f32
    %log2e = arith.constant dense<1.44269504> : vector<4xf32>
    %row = gpu.block_id x
    %t = gpu.thread_id x
    %i0 = arith.muli %t, %c4 : index
    %i1 = arith.addi %i0, %c1024 : index
    %i2 = arith.addi %i0, %c2048 : index
    %i3 = arith.addi %i0, %c3072 : index
    %v0 = vector.load %x[%row, %i0] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    %v1 = vector.load %x[%row, %i1] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    %v2 = vector.load %x[%row, %i2] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    %v3 = vector.load %x[%row, %i3] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    %mp = arith.maxnumf %v0, %v1 : vector<4xf32>
    %mq = arith.maxnumf %v2, %v3 : vector<4xf32>
    %mr = arith.maxnumf %mp, %mq : vector<4xf32>
    %own = vector.reduction <maxnumf>, %mr : vector<4xf32> into f32
    %most = gpu.all_reduce maxnumf %own uniform {} : (f32) -> f32
    %m = vector.broadcast %most : f32 to vector<4xf32>
    %d0 = arith.subf %v0, %m : vector<4xf32>
    %s0 = arith.mulf %d0, %log2e : vector<4xf32>
    %e0 = math.exp2 %s0 fastmath<afn> : vector<4xf32>
    %d1 = arith.subf %v1, %m : vector<4xf32>
    %s1 = arith.mulf %d1, %log2e : vector<4xf32>
    %e1 = math.exp2 %s1 fastmath<afn> : vector<4xf32>
    %d2 = arith.subf %v2, %m : vector<4xf32>
    %s2 = arith.mulf %d2, %log2e : vector<4xf32>
    %e2 = math.exp2 %s2 fastmath<afn> : vector<4xf32>
    %d3 = arith.subf %v3, %m : vector<4xf32>
    %s3 = arith.mulf %d3, %log2e : vector<4xf32>
    %e3 = math.exp2 %s3 fastmath<afn> : vector<4xf32>
    %ap = arith.addf %e0, %e1 : vector<4xf32>
    %aq = arith.addf %e2, %e3 : vector<4xf32>
    %ar = arith.addf %ap, %aq : vector<4xf32>
    %part = vector.reduction <add>, %ar : vector<4xf32> into f32
    %sum = gpu.all_reduce add %part uniform {} : (f32) -> f32
    %share = arith.divf %one, %sum : f32
    %w = vector.broadcast %share : f32 to vector<4xf32>
    %r0 = arith.mulf %e0, %w : vector<4xf32>
    %r1 = arith.mulf %e1, %w : vector<4xf32>
    %r2 = arith.mulf %e2, %w : vector<4xf32>
    %r3 = arith.mulf %e3, %w : vector<4xf32>
    vector.store %r0, %out[%row, %i0] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r1, %out[%row, %i1] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r2, %out[%row, %i2] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r3, %out[%row, %i3] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    gpu.return
  }
}
