// What programs/wmma_matmul.mlir is, in CUDA C++: C += A * B, a warp for each 16 x 16 tile of C.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__global__ void tile(const half *a, const half *b, float *c) {
  const unsigned row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (unsigned i = 0; i < 1024; i += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(x, a + row * 1024 + i, 1024);
    wmma::load_matrix_sync(y, b + i * 1024 + column, 1024);
    wmma::load_matrix_sync(sum, c + row * 1024 + column, 1024, wmma::mem_row_major);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c + row * 1024 + column, sum, 1024, wmma::mem_row_major);
  }
}

extern "C" int matmul_f16(const half *a, const half *b, float *c, unsigned rows) {
  tile<<<dim3(64, (rows + 15) / 16), 32>>>(a, b, c);
  return static_cast<int>(cudaGetLastError());
}
