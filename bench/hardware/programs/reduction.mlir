// sums[b] = the sum of the elements that the block b takes, runs of four at a time, four runs in flight; lengths are
// multiples of 4. A second launch of one block adds up what the first one left.
gpu.module @kernels {
  gpu.func @reduction(%x: memref<?xf32>, %sums: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %n = memref.dim %x, %c0 : memref<?xf32>
    %i = gpu.global_id x
    %blocks = gpu.grid_dim x
    %threads = gpu.block_dim x
    %all = arith.muli %blocks, %threads : index
    %step = arith.muli %all, %c4 : index
    %far = arith.muli %all, %c16 : index
    %start = arith.muli %i, %c4 : index
    %step2 = arith.muli %step, %c2 : index
    %step3 = arith.muli %step, %c3 : index
    %rounds = arith.divui %n, %far : index
    %whole = arith.muli %rounds, %far : index
    %s:4 = scf.for %k = %start to %whole step %far iter_args(%s0 = %zero, %s1 = %zero, %s2 = %zero, %s3 = %zero)
        -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
      %k1 = arith.addi %k, %step : index
      %k2 = arith.addi %k, %step2 : index
      %k3 = arith.addi %k, %step3 : index
      %v0 = vector.load %x[%k] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %v1 = vector.load %x[%k1] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %v2 = vector.load %x[%k2] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %v3 = vector.load %x[%k3] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %r0 = arith.addf %s0, %v0 : vector<4xf32>
      %r1 = arith.addf %s1, %v1 : vector<4xf32>
      %r2 = arith.addf %s2, %v2 : vector<4xf32>
      %r3 = arith.addf %s3, %v3 : vector<4xf32>
      scf.yield %r0, %r1, %r2, %r3 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
    }
    %from = arith.addi %whole, %start : index
    %rest = scf.for %k = %from to %n step %step iter_args(%s0 = %s#0) -> vector<4xf32> {
      %v0 = vector.load %x[%k] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
      %r0 = arith.addf %s0, %v0 : vector<4xf32>
      scf.yield %r0 : vector<4xf32>
    }
    %p = arith.addf %rest, %s#1 : vector<4xf32>
    %q = arith.addf %s#2, %s#3 : vector<4xf32>
    %r = arith.addf %p, %q : vector<4xf32>
    %own = vector.reduction <add>, %r : vector<4xf32> into f32
    %sum = gpu.all_reduce add %own uniform {} : (f32) -> f32
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %lead = arith.cmpi eq, %t, %c0 : index
    scf.if %lead {
      memref.store %sum, %sums[%b] : memref<?xf32>
    }
    gpu.return
  }
}
