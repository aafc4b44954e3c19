// Vectors in kernels: contiguous loads, a reduction, transfers of two dimensions that cross the edge of a memref.
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
  gpu.func @transpose_block(%x: memref<?x?xf32>, %out: memref<?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%c0, %c0], %zero : memref<?x?xf32>, vector<2x4xf32>
    %r = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
    vector.transfer_write %r, %out[%c0, %c0] : vector<4x2xf32>, memref<?x?xf32>
    gpu.return
  }
}
