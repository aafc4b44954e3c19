/* The kernels of bench/host.py as loops over arrays, in the form that a compiler makes fast code of: threads
 * over the outermost loop, vectors over the innermost. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

typedef int64_t size;

#define SHARED_LOOP _Pragma("omp parallel for schedule(static)")

/* What bandwidth the machine has: STREAM's copy. */
void copy(const float *restrict x, float *restrict out, size n) {
#pragma omp parallel
  {
    size threads = omp_get_num_threads(), own = omp_get_thread_num();
    size first = n * own / threads, last = n * (own + 1) / threads;
    memcpy(out + first, x + first, (size_t)(last - first) * sizeof *out);
  }
}

void triad(const float *restrict b, const float *restrict c, float *restrict a, size n, float s) {
#pragma omp parallel for simd schedule(static)
  for (size i = 0; i < n; ++i)
    a[i] = b[i] + s * c[i];
}

void softmax(const float *restrict x, float *restrict out, size rows, size cols) {
  SHARED_LOOP
  for (size r = 0; r < rows; ++r) {
    const float *in = x + r * cols;
    float *to = out + r * cols, most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
    for (size j = 0; j < cols; ++j)
      most = in[j] > most ? in[j] : most;
    for (size j = 0; j < cols; ++j)
      to[j] = expf(in[j] - most);
#pragma omp simd reduction(+ : sum)
    for (size j = 0; j < cols; ++j)
      sum += to[j];
    float scale = 1 / sum;
    for (size j = 0; j < cols; ++j)
      to[j] *= scale;
  }
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict out, size rows, size cols, float epsilon) {
  SHARED_LOOP
  for (size r = 0; r < rows; ++r) {
    const float *in = x + r * cols;
    float *to = out + r * cols, sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (size j = 0; j < cols; ++j)
      sum += in[j];
    float mean = sum / (float)cols;
#pragma omp simd reduction(+ : squares)
    for (size j = 0; j < cols; ++j)
      squares += (in[j] - mean) * (in[j] - mean);
    float scale = 1 / sqrtf(squares / (float)cols + epsilon);
    for (size j = 0; j < cols; ++j)
      to[j] = (in[j] - mean) * scale * gamma[j] + beta[j];
  }
}

void transpose(const float *restrict x, float *restrict out, size rows, size cols) {
  enum { TILE = 32 };
#pragma omp parallel for collapse(2) schedule(static)
  for (size i0 = 0; i0 < rows; i0 += TILE)
    for (size j0 = 0; j0 < cols; j0 += TILE)
      for (size j = j0; j < (j0 + TILE < cols ? j0 + TILE : cols); ++j)
        for (size i = i0; i < (i0 + TILE < rows ? i0 + TILE : rows); ++i)
          out[j * rows + i] = x[i * cols + j];
}

void histogram(const int32_t *restrict x, int32_t *restrict bins, size n) {
  memset(bins, 0, 256 * sizeof *bins);
#pragma omp parallel
  {
    /* Four tables: equal values in a row need not wait for each other. */
    int32_t own[4][256] = {{0}};
#pragma omp for schedule(static) nowait
    for (size i = 0; i < n / 4; ++i)
      for (size k = 0; k < 4; ++k)
        ++own[k][x[4 * i + k]];
#pragma omp single nowait
    for (size i = n / 4 * 4; i < n; ++i)
      ++own[0][x[i]];
#pragma omp critical
    for (size k = 0; k < 256; ++k)
      bins[k] += own[0][k] + own[1][k] + own[2][k] + own[3][k];
  }
}

void stencil(const float *restrict x, float *restrict out, size rows, size cols, float center, float side) {
  SHARED_LOOP
  for (size i = 1; i < rows - 1; ++i) {
    const float *mid = x + i * cols, *up = mid - cols, *down = mid + cols;
    float *to = out + i * cols;
    for (size j = 1; j < cols - 1; ++j)
      to[j] = center * mid[j] + side * (up[j] + down[j] + (mid[j - 1] + mid[j + 1]));
  }
}

void reduction(const float *restrict x, float *restrict sum, size n) {
  float all = 0;
#pragma omp parallel for simd reduction(+ : all) schedule(static)
  for (size i = 0; i < n; ++i)
    all += x[i];
  *sum = all;
}

void scan(const int32_t *restrict x, int32_t *restrict out, size n) {
  int32_t sums[1024];
#pragma omp parallel num_threads(omp_get_max_threads() < 1024 ? omp_get_max_threads() : 1024)
  {
    size threads = omp_get_num_threads(), own = omp_get_thread_num();
    size first = n * own / threads, last = n * (own + 1) / threads;
    int32_t sum = 0;
    for (size i = first; i < last; ++i)
      sum += x[i];
    sums[own] = sum;
#pragma omp barrier
    sum = 0;
    for (size t = 0; t < own; ++t)
      sum += sums[t];
    for (size i = first; i < last; ++i)
      out[i] = sum += x[i];
  }
}

/* Square, sides a multiple of 64. Rows of 4 by columns of 64 at a time, whose sums stay in registers. */
void matmul(const float *restrict a, const float *restrict b, float *restrict c, size n, size columns) {
  typedef float vector __attribute__((vector_size(64), aligned(4)));
  enum { LANES = 16, WIDE = 4, HIGH = 4 };
  (void)columns;
#pragma omp parallel for collapse(2) schedule(static)
  for (size j = 0; j < n; j += LANES * WIDE)
    for (size i = 0; i < n; i += HIGH) {
      vector sums[HIGH][WIDE] = {0};
      for (size k = 0; k < n; ++k)
        for (size h = 0; h < HIGH; ++h)
          for (size w = 0; w < WIDE; ++w)
            sums[h][w] += a[(i + h) * n + k] * *(const vector *)&b[k * n + j + LANES * w];
      for (size h = 0; h < HIGH; ++h)
        for (size w = 0; w < WIDE; ++w)
          *(vector *)&c[(i + h) * n + j + LANES * w] = sums[h][w];
    }
}

void n_body(const float *restrict x, const float *restrict y, const float *restrict z,
            const float *restrict mass, float *restrict ax, float *restrict ay, float *restrict az, size n,
            float softening) {
  SHARED_LOOP
  for (size i = 0; i < n; ++i) {
    float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
    for (size j = 0; j < n; ++j) {
      float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      float square = dx * dx + dy * dy + dz * dz + softening;
      float pull = mass[j] / (square * sqrtf(square));
      fx += pull * dx;
      fy += pull * dy;
      fz += pull * dz;
    }
    ax[i] = fx;
    ay[i] = fy;
    az[i] = fz;
  }
}

void spmv(const int32_t *restrict starts, const int32_t *restrict columns, const float *restrict values,
          const float *restrict x, float *restrict y, size rows) {
  SHARED_LOOP
  for (size r = 0; r < rows; ++r) {
    float sum = 0;
    for (int32_t k = starts[r]; k < starts[r + 1]; ++k)
      sum += values[k] * x[columns[k]];
    y[r] = sum;
  }
}
