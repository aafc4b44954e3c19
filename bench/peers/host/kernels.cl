/* The kernels of bench/host/programs in OpenCL C, line by line: the same blocks, barriers and local memory. */
#define GROUP(x, y) __attribute__((reqd_work_group_size(x, y, 1)))
#define LOCAL_BARRIER barrier(CLK_LOCAL_MEM_FENCE)

/* A group's part of n elements. */
long part_size(long n) { return (n + get_num_groups(0) - 1) / get_num_groups(0); }
long part_begin(long n) { return get_group_id(0) * part_size(n); }
long part_end(long n) { return min(part_begin(n) + part_size(n), n); }

GROUP(256, 1)
kernel void triad(global const float *b, global const float *c, global float *a, long n, float s) {
  long i = get_group_id(0) * 256 + get_local_id(0);
  if (i < n)
    a[i] = fma(s, c[i], b[i]);
}

/* A tree over the 256 elements of `part`; the result is in part[0]. */
#define TREE(combine)                                                                                        \
  for (int half_ = 128; half_ > 0; half_ >>= 1) {                                                            \
    if (t < half_)                                                                                           \
      part[t] = combine(part[t], part[t + half_]);                                                           \
    LOCAL_BARRIER;                                                                                           \
  }
#define ADD(a, b) ((a) + (b))

GROUP(256, 1) kernel void softmax(global const float *x, global float *out, long rows, long cols) {
  local float part[256];
  int t = get_local_id(0);
  x += get_group_id(0) * cols;
  out += get_group_id(0) * cols;
  float most = -INFINITY;
  for (long j = t; j < cols; j += 256)
    most = fmax(most, x[j]);
  part[t] = most;
  LOCAL_BARRIER;
  TREE(fmax)
  most = part[0];
  LOCAL_BARRIER;
  float sum = 0;
  for (long j = t; j < cols; j += 256) {
    float e = exp(x[j] - most);
    out[j] = e;
    sum += e;
  }
  part[t] = sum;
  LOCAL_BARRIER;
  TREE(ADD)
  float scale = 1 / part[0];
  for (long j = t; j < cols; j += 256)
    out[j] *= scale;
}

GROUP(256, 1)
kernel void layer_norm(global const float *x, global const float *gamma, global const float *beta,
                       global float *out, long rows, long cols, float epsilon) {
  local float part[256];
  int t = get_local_id(0);
  float share = 1 / (float)cols;
  x += get_group_id(0) * cols;
  out += get_group_id(0) * cols;
  float sum = 0;
  for (long j = t; j < cols; j += 256)
    sum += x[j];
  part[t] = sum;
  LOCAL_BARRIER;
  TREE(ADD)
  float mean = part[0] * share;
  LOCAL_BARRIER;
  float squares = 0;
  for (long j = t; j < cols; j += 256) {
    float d = x[j] - mean;
    squares = fma(d, d, squares);
  }
  part[t] = squares;
  LOCAL_BARRIER;
  TREE(ADD)
  float scale = 1 / sqrt(part[0] * share + epsilon);
  for (long j = t; j < cols; j += 256)
    out[j] = fma((x[j] - mean) * scale, gamma[j], beta[j]);
}

GROUP(32, 8) kernel void transpose(global const float *x, global float *out, long rows, long cols) {
  local float tile[32][33];
  int tx = get_local_id(0), ty = get_local_id(1);
  long x0 = get_group_id(0) * 32, y0 = get_group_id(1) * 32;
  for (int k = 0; k < 32; k += 8)
    if (y0 + ty + k < rows && x0 + tx < cols)
      tile[ty + k][tx] = x[(y0 + ty + k) * cols + x0 + tx];
  LOCAL_BARRIER;
  for (int k = 0; k < 32; k += 8)
    if (x0 + ty + k < cols && y0 + tx < rows)
      out[(x0 + ty + k) * rows + y0 + tx] = tile[tx][ty + k];
}

GROUP(256, 1) kernel void clear(global int *bins) { bins[get_local_id(0)] = 0; }

GROUP(256, 1) kernel void histogram(global const int *x, global int *bins, long n) {
  local int counts[256];
  int t = get_local_id(0);
  counts[t] = 0;
  LOCAL_BARRIER;
  for (long i = part_begin(n) + t, end = part_end(n); i < end; i += 256)
    atomic_inc(&counts[x[i]]);
  LOCAL_BARRIER;
  atomic_add(&bins[t], counts[t]);
}

GROUP(32, 8)
kernel void stencil(global const float *x, global float *out, long rows, long cols, float center,
                    float side) {
  long j = get_group_id(0) * 32 + get_local_id(0) + 1, i = get_group_id(1) * 8 + get_local_id(1) + 1;
  if (i < rows - 1 && j < cols - 1) {
    global const float *at = x + i * cols + j;
    float around = (at[-cols] + at[cols]) + (at[-1] + at[1]);
    out[i * cols + j] = fma(side, around, center * at[0]);
  }
}

GROUP(256, 1) kernel void sum(global const float *x, global float *sums, long n) {
  local float part[256];
  int t = get_local_id(0);
  float own = 0;
  for (long i = part_begin(n) + t, end = part_end(n); i < end; i += 256)
    own += x[i];
  part[t] = own;
  LOCAL_BARRIER;
  TREE(ADD)
  if (t == 0)
    sums[get_group_id(0)] = part[0];
}

GROUP(256, 1) kernel void run_sums(global const int *x, global int *sums, long n) {
  local int part[256];
  int t = get_local_id(0);
  long start = get_group_id(0) * 2048, end = min(start + 2048, n);
  int own = 0;
  for (long i = start + t; i < end; i += 256)
    own += x[i];
  part[t] = own;
  LOCAL_BARRIER;
  TREE(ADD)
  if (t == 0)
    sums[get_group_id(0)] = part[0];
}

/* The running sums of the 256 elements of `part`. */
#define RUNNING                                                                                              \
  for (int far = 1; far < 256; far <<= 1) {                                                                  \
    int add = t >= far ? part[t - far] : 0;                                                                  \
    LOCAL_BARRIER;                                                                                           \
    part[t] += add;                                                                                          \
    LOCAL_BARRIER;                                                                                           \
  }

GROUP(256, 1) kernel void scan_sums(global int *sums, long n) {
  local int part[256];
  int t = get_local_id(0), before = 0;
  for (long start = 0; start < n; start += 256) {
    long i = start + t;
    part[t] = i < n ? sums[i] : 0;
    LOCAL_BARRIER;
    RUNNING
    if (i < n)
      sums[i] = before + part[t];
    before += part[255];
    LOCAL_BARRIER;
  }
}

GROUP(256, 1) kernel void scan_runs(global const int *x, global const int *sums, global int *out, long n) {
  local int part[256];
  int t = get_local_id(0);
  long first = get_group_id(0) * 2048 + t * 8, end = min(first + 8, n);
  int own = 0;
  for (long i = first; i < end; ++i)
    own += x[i];
  part[t] = own;
  LOCAL_BARRIER;
  RUNNING
  int total = (get_group_id(0) > 0 ? sums[get_group_id(0) - 1] : 0) + part[t] - own;
  for (long i = first; i < end; ++i)
    out[i] = total += x[i];
}

GROUP(16, 16)
kernel void matmul(global const float *a, global const float *b, global float *c, long n, long cols) {
  local float ta[64][16], tb[16][64];
  int tx = get_local_id(0), ty = get_local_id(1);
  long row = get_group_id(1) * 64 + ty, col = get_group_id(0) * 64 + tx;
  float sums[4][4] = {{0}};
  for (long k0 = 0; k0 < n; k0 += 16) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      ta[ty + 16 * i][tx] = a[(row + 16 * i) * n + k0 + tx];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      tb[ty][tx + 16 * j] = b[(k0 + ty) * cols + col + 16 * j];
    LOCAL_BARRIER;
    for (int k = 0; k < 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          sums[i][j] = fma(ta[ty + 16 * i][k], tb[k][tx + 16 * j], sums[i][j]);
    LOCAL_BARRIER;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      c[(row + 16 * i) * cols + col + 16 * j] = sums[i][j];
}

GROUP(256, 1)
kernel void n_body(global const float *x, global const float *y, global const float *z,
                   global const float *mass, global float *ax, global float *ay, global float *az, long n,
                   float softening) {
  local float tx[256], ty[256], tz[256], tm[256];
  int t = get_local_id(0);
  long i = get_group_id(0) * 256 + t, own = min(i, n - 1);
  float xi = x[own], yi = y[own], zi = z[own], fx = 0, fy = 0, fz = 0;
  for (long tile = 0; tile < n; tile += 256) {
    long source = min(tile + t, n - 1);
    tx[t] = x[source];
    ty[t] = y[source];
    tz[t] = z[source];
    tm[t] = tile + t < n ? mass[source] : 0;
    LOCAL_BARRIER;
    for (int j = 0; j < 256; ++j) {
      float dx = tx[j] - xi, dy = ty[j] - yi, dz = tz[j] - zi;
      float inverse = rsqrt(fma(dz, dz, fma(dy, dy, fma(dx, dx, softening))));
      float pull = tm[j] * (inverse * inverse * inverse);
      fx = fma(pull, dx, fx);
      fy = fma(pull, dy, fy);
      fz = fma(pull, dz, fz);
    }
    LOCAL_BARRIER;
  }
  if (i < n) {
    ax[i] = fx;
    ay[i] = fy;
    az[i] = fz;
  }
}

GROUP(256, 1)
kernel void spmv(global const int *starts, global const int *columns, global const float *values,
                 global const float *x, global float *y, long rows) {
  long row = get_group_id(0) * 256 + get_local_id(0);
  if (row < rows) {
    float sum = 0;
    for (long k = starts[row], last = starts[row + 1]; k < last; ++k)
      sum = fma(values[k], x[columns[k]], sum);
    y[row] = sum;
  }
}
