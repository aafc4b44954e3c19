// The kernels of bench/hardware in CUDA C++, as one writes them by hand: runs of four elements, rows in
// registers. Each launcher enqueues its work so many times on the default stream.
#include <cstdint>
#include <cuda_runtime.h>

namespace {

__inline__ __device__ float4 load4(const float *p) { return *reinterpret_cast<const float4 *>(p); }
__inline__ __device__ void store4(float *p, float4 v) { *reinterpret_cast<float4 *>(p) = v; }

template <typename Op> __inline__ __device__ float blockAll(float v, Op op, float *part) {
  for (int far = 16; far; far /= 2)
    v = op(v, __shfl_xor_sync(~0u, v, far));
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 8];
  for (int far = 4; far; far /= 2)
    v = op(v, __shfl_xor_sync(~0u, v, far));
  __syncthreads();
  return v;
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__global__ void copyKernel(const float4 *x, float4 *out, int64_t n) {
  int64_t i = blockIdx.x * 512LL + threadIdx.x;
  if (i + 256 < n) {
    float4 a = x[i], b = x[i + 256];
    out[i] = a;
    out[i + 256] = b;
  } else if (i < n) {
    out[i] = x[i];
  }
}

__global__ __launch_bounds__(256) void triadKernel(const float *b, const float *c, float *a, float s,
                                                   int64_t n) {
  for (int64_t i = 4 * (blockIdx.x * 512LL + threadIdx.x), end = i + 2048; i < end && i < n; i += 1024) {
    float4 p = load4(b + i), q = load4(c + i);
    store4(a + i, {fmaf(s, q.x, p.x), fmaf(s, q.y, p.y), fmaf(s, q.z, p.z), fmaf(s, q.w, p.w)});
  }
}

__global__ __launch_bounds__(256) void transposeKernel(const float *x, float *out, int side) {
  __shared__ float tile[32][33];
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    tile[threadIdx.y + i][threadIdx.x] = x[int64_t(row + i) * side + col];
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    out[int64_t(row + i) * side + col] = tile[threadIdx.x][threadIdx.y + i];
}

__global__ __launch_bounds__(256) void sumKernel(const float *x, float *sums, int64_t n) {
  __shared__ float part[8];
  float4 s[4] = {};
  int64_t step = 4LL * gridDim.x * 256, i = 4LL * (blockIdx.x * 256 + threadIdx.x);
  for (; i + 3 * step < n; i += 4 * step)
    for (int j = 0; j < 4; ++j) {
      float4 v = load4(x + i + j * step);
      s[j].x += v.x, s[j].y += v.y, s[j].z += v.z, s[j].w += v.w;
    }
  for (; i < n; i += step) {
    float4 v = load4(x + i);
    s[0].x += v.x, s[0].y += v.y, s[0].z += v.z, s[0].w += v.w;
  }
  float own = 0;
  for (int j = 0; j < 4; ++j)
    own += (s[j].x + s[j].y) + (s[j].z + s[j].w);
  float sum = blockAll(own, Add{}, part);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

__global__ __launch_bounds__(256) void softmaxKernel(const float *x, float *out) {
  __shared__ float part[8];
  const float *row = x + blockIdx.x * 4096LL;
  float v[16], most = -INFINITY, sum = 0;
  for (int i = 0; i < 4; ++i)
    store4(v + 4 * i, load4(row + 1024 * i + 4 * threadIdx.x));
  for (float f : v)
    most = fmaxf(most, f);
  most = blockAll(most, Max{}, part);
  for (float &f : v)
    sum += f = __expf(f - most);
  float share = 1 / blockAll(sum, Add{}, part);
  for (float &f : v)
    f *= share;
  for (int i = 0; i < 4; ++i)
    store4(out + blockIdx.x * 4096LL + 1024 * i + 4 * threadIdx.x, load4(v + 4 * i));
}

__global__ __launch_bounds__(256) void layerNormKernel(const float *x, const float *gamma, const float *beta,
                                                       float *out, float epsilon) {
  __shared__ float part[8];
  const float *row = x + blockIdx.x * 4096LL;
  float v[16], sum = 0, squares = 0;
  for (int i = 0; i < 4; ++i)
    store4(v + 4 * i, load4(row + 1024 * i + 4 * threadIdx.x));
  for (float f : v)
    sum += f;
  float mean = blockAll(sum, Add{}, part) / 4096;
  for (float &f : v)
    f -= mean, squares += f * f;
  float scale = rsqrtf(blockAll(squares, Add{}, part) / 4096 + epsilon);
  for (int i = 0; i < 4; ++i) {
    int at = 1024 * i + 4 * threadIdx.x;
    float4 g = load4(gamma + at), b = load4(beta + at), d = load4(v + 4 * i);
    store4(out + blockIdx.x * 4096LL + at, {fmaf(d.x * scale, g.x, b.x), fmaf(d.y * scale, g.y, b.y),
                                            fmaf(d.z * scale, g.z, b.z), fmaf(d.w * scale, g.w, b.w)});
  }
}

__global__ __launch_bounds__(256) void histogramKernel(const int4 *x, int *bins, int64_t n) {
  __shared__ int parts[8][256];
  for (auto &part : parts)
    part[threadIdx.x] = 0;
  __syncthreads();
  int *mine = parts[threadIdx.x / 32];
  for (int64_t i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) {
    int4 v = x[i];
    atomicAdd(mine + v.x, 1), atomicAdd(mine + v.y, 1), atomicAdd(mine + v.z, 1), atomicAdd(mine + v.w, 1);
  }
  __syncthreads();
  int sum = 0;
  for (auto &part : parts)
    sum += part[threadIdx.x];
  atomicAdd(bins + threadIdx.x, sum);
}

__global__ __launch_bounds__(256) void stencilKernel(const float *x, float *out, float center, float side,
                                                     int h, int w) {
  int j = 4 * (blockIdx.x * 32 + threadIdx.x), i = blockIdx.y * 8 + threadIdx.y;
  if (i == 0 || i >= h - 1 || j >= w)
    return;
  const float *at = x + int64_t(i) * w + j;
  float4 n = load4(at - w), m = load4(at), s = load4(at + w);
  float left = j ? at[-1] : 0, right = j + 4 < w ? at[4] : 0;
  float4 r = {center * m.x + side * (n.x + s.x + left + m.y), center * m.y + side * (n.y + s.y + m.x + m.z),
              center * m.z + side * (n.z + s.z + m.y + m.w), center * m.w + side * (n.w + s.w + m.z + right)};
  if (j == 0)
    r.x = 0;
  if (j + 4 >= w)
    r.w = 0;
  store4(out + int64_t(i) * w + j, r);
}

__global__ __launch_bounds__(256) void spmvKernel(const int *starts, const int *columns, const float *values,
                                                  const float *x, float *y, int n) {
  int row = blockIdx.x * 32 + threadIdx.x / 8, lane = threadIdx.x % 8;
  float sum = 0;
  if (row < n)
    for (int k = starts[row] + lane, end = starts[row + 1]; k < end; k += 8)
      sum = fmaf(values[k], x[columns[k]], sum);
  for (int far = 4; far; far /= 2)
    sum += __shfl_xor_sync(~0u, sum, far);
  if (row < n && lane == 0)
    y[row] = sum;
}

} // namespace

// What Python calls: arrays in the order inputs, outputs, scratch; sizes; the last argument is how often. The
// result is CUDA's status.
extern "C" {
int copy(const float4 *x, float4 *out, int64_t n, int times) {
  while (times--)
    copyKernel<<<unsigned((n / 4 + 511) / 512), 256>>>(x, out, n / 4);
  return cudaDeviceSynchronize();
}
int triad(const float *b, const float *c, float *a, int64_t n, int times) {
  while (times--)
    triadKernel<<<unsigned((n + 2047) / 2048), 256>>>(b, c, a, 3.0f, n);
  return cudaDeviceSynchronize();
}
int transpose(const float *x, float *out, int64_t side, int times) {
  dim3 blocks(unsigned(side / 32), unsigned(side / 32));
  while (times--)
    transposeKernel<<<blocks, dim3(32, 8)>>>(x, out, int(side));
  return cudaDeviceSynchronize();
}
int reduction(const float *x, float *sums, float *parts, int64_t n, int blocks, int times) {
  while (times--) {
    sumKernel<<<blocks, 256>>>(x, parts, n);
    sumKernel<<<1, 256>>>(parts, sums, blocks);
  }
  return cudaDeviceSynchronize();
}
int softmax(const float *x, float *out, int64_t rows, int times) {
  while (times--)
    softmaxKernel<<<unsigned(rows), 256>>>(x, out);
  return cudaDeviceSynchronize();
}
int layer_norm(const float *x, const float *gamma, const float *beta, float *out, int64_t rows, int times) {
  while (times--)
    layerNormKernel<<<unsigned(rows), 256>>>(x, gamma, beta, out, 1e-5f);
  return cudaDeviceSynchronize();
}
int histogram(const int4 *x, int *bins, int64_t n, int times) {
  while (times--) {
    cudaMemsetAsync(bins, 0, 1024);
    histogramKernel<<<1056, 256>>>(x, bins, n / 4);
  }
  return cudaDeviceSynchronize();
}
int stencil(const float *x, float *out, int64_t h, int64_t w, int times) {
  dim3 blocks(unsigned((w + 127) / 128), unsigned((h + 7) / 8));
  while (times--)
    stencilKernel<<<blocks, dim3(32, 8)>>>(x, out, 0.5f, 0.125f, int(h), int(w));
  return cudaDeviceSynchronize();
}
int spmv(const int *starts, const int *columns, const float *values, const float *x, float *y, int64_t n,
         int times) {
  while (times--)
    spmvKernel<<<unsigned((n + 31) / 32), 256>>>(starts, columns, values, x, y, int(n));
  return cudaDeviceSynchronize();
}
}
