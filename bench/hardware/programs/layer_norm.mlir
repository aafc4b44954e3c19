// out[r, :] = (x[r, :] - mean) / sqrt(variance + epsilon) * gamma + beta, rows of 4096. A block keeps a row in
// registers: 256 threads, four runs of four elements each.
gpu.module @kernels {
  gpu.func @layer_norm(%x: memref<?x4096xf32>, %gamma: memref<4096xf32>, %beta: memref<4096xf32>,
                       %out: memref<?x4096xf32>, %epsilon: f32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 6 : i32} {
    %c4 = arith.constant 4 : index
    %c1024 = arith.constant 1024 : index
    %c2048 = arith.constant 2048 : index
    %c3072 = arith.constant 3072 : index
    %share = arith.constant 2.44140625e-04 : f32
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
    %ap = arith.addf %v0, %v1 : vector<4xf32>
    %aq = arith.addf %v2, %v3 : vector<4xf32>
    %ar = arith.addf %ap, %aq : vector<4xf32>
    %own = vector.reduction <add>, %ar : vector<4xf32> into f32
    %sum = gpu.all_reduce add %own uniform {} : (f32) -> f32
    %mean = arith.mulf %sum, %share : f32
    %m = vector.broadcast %mean : f32 to vector<4xf32>
    %d0 = arith.subf %v0, %m : vector<4xf32>
    %d1 = arith.subf %v1, %m : vector<4xf32>
    %d2 = arith.subf %v2, %m : vector<4xf32>
    %d3 = arith.subf %v3, %m : vector<4xf32>
    %q0 = arith.mulf %d0, %d0 : vector<4xf32>
    %q1 = arith.mulf %d1, %d1 : vector<4xf32>
    %q2 = arith.mulf %d2, %d2 : vector<4xf32>
    %q3 = arith.mulf %d3, %d3 : vector<4xf32>
    %bp = arith.addf %q0, %q1 : vector<4xf32>
    %bq = arith.addf %q2, %q3 : vector<4xf32>
    %br = arith.addf %bp, %bq : vector<4xf32>
    %part = vector.reduction <add>, %br : vector<4xf32> into f32
    %squares = gpu.all_reduce add %part uniform {} : (f32) -> f32
    %variance = arith.mulf %squares, %share : f32
    %shifted = arith.addf %variance, %epsilon : f32
    %inverse = math.rsqrt %shifted : f32
    %w = vector.broadcast %inverse : f32 to vector<4xf32>
    %g0 = vector.load %gamma[%i0] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %h0 = vector.load %beta[%i0] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %g1 = vector.load %gamma[%i1] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %h1 = vector.load %beta[%i1] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %g2 = vector.load %gamma[%i2] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %h2 = vector.load %beta[%i2] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %g3 = vector.load %gamma[%i3] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %h3 = vector.load %beta[%i3] {alignment = 16 : i64} : memref<4096xf32>, vector<4xf32>
    %n0 = arith.mulf %d0, %w : vector<4xf32>
    %r0 = vector.fma %n0, %g0, %h0 : vector<4xf32>
    %n1 = arith.mulf %d1, %w : vector<4xf32>
    %r1 = vector.fma %n1, %g1, %h1 : vector<4xf32>
    %n2 = arith.mulf %d2, %w : vector<4xf32>
    %r2 = vector.fma %n2, %g2, %h2 : vector<4xf32>
    %n3 = arith.mulf %d3, %w : vector<4xf32>
    %r3 = vector.fma %n3, %g3, %h3 : vector<4xf32>
    vector.store %r0, %out[%row, %i0] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r1, %out[%row, %i1] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r2, %out[%row, %i2] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    vector.store %r3, %out[%row, %i3] {alignment = 16 : i64} : memref<?x4096xf32>, vector<4xf32>
    gpu.return
  }
}
