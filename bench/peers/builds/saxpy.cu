// What examples/saxpy.mlir is, in CUDA C++: the kernel and a host function that launches it, for nvcc -shared.
#include <cuda_runtime.h>

__global__ void saxpy_kernel(float a, const float *x, float *y, long n) {
  long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

extern "C" int saxpy(float a, const float *x, float *y, long n) {
  saxpy_kernel<<<static_cast<unsigned>((n + 255) / 256), 256>>>(a, x, y, n);
  return static_cast<int>(cudaGetLastError());
}
