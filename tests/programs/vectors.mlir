// Vectors in kernels: contiguous loads, a reduction.
gpu.module @vectors {
  gpu.func @double_fours(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    %r = arith.addf %v, %v : vector<4xf32>
    vector.store %r, %out[%i] : memref<?xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @sum_fours(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%i] : memref<?xf32>, vector<4xf32>
    %r = vector.reduction <add>, %v : vector<4xf32> into f32
    memref.store %r, %out[%t] : memref<?xf32>
    gpu.return
  }
}
