// Transfers of vectors of two dimensions, of which one crosses the edge of its memref.
gpu.module @vectors_2d {
  gpu.func @transpose_block(%x: memref<?x?xf32>, %out: memref<?x?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%c0, %c0], %zero : memref<?x?xf32>, vector<2x4xf32>
    %r = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
    vector.transfer_write %r, %out[%c0, %c0] : vector<4x2xf32>, memref<?x?xf32>
    gpu.return
  }
}
