/* functions.c: functions with MLIR's C interface, for the tests of the Python runtime. */
#include "mgpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMREF(name, type, rank)                                                                             \
  typedef struct {                                                                                           \
    type *allocated, *aligned;                                                                               \
    int64_t offset, sizes[rank], strides[rank];                                                              \
  } name

MEMREF(f32_1, float, 1);
MEMREF(f32_2, float, 2);
MEMREF(f64_2, double, 2);
MEMREF(i32_1, int32_t, 1);
MEMREF(i64_1, int64_t, 1);
MEMREF(raw_1, void, 1);
typedef struct {
  float *allocated, *aligned;
  int64_t offset;
} f32_0;

void _mlir_ciface_scale(float a, f32_1 *x) {
  for (int64_t i = 0; i < x->sizes[0]; ++i)
    x->aligned[i] *= a;
}

double _mlir_ciface_weigh(f32_2 *x) {
  double sum = 0;
  for (int64_t i = 0; i < x->sizes[0]; ++i)
    for (int64_t j = 0; j < x->sizes[1]; ++j)
      sum += (double)(10 * i + j) * x->aligned[x->offset + i * x->strides[0] + j * x->strides[1]];
  return sum;
}

void _mlir_ciface_increment(f32_0 *x) { *x->aligned += 1; }

/* The first element, by the constants of the type strided<[1], offset: 4>. */
float _mlir_ciface_fourth(f32_1 *x) { return x->aligned[4]; }

/* What arrived: offset, sizes, strides. */
void _mlir_ciface_layout(f32_2 *x, i64_1 *out) { memcpy(out->aligned, &x->offset, 5 * sizeof(int64_t)); }

int8_t _mlir_ciface_echo_int8(int8_t x) { return x; }
uint64_t _mlir_ciface_echo_uint64(uint64_t x) { return x; }
int64_t _mlir_ciface_echo_int64(int64_t x) { return x; }
/* Only the lowest bit of an i1 result means anything. */
uint8_t _mlir_ciface_echo_bool(bool x) { return (uint8_t)(0xA4 | x); }
float _mlir_ciface_echo_float32(float x) { return x; }
double _mlir_ciface_echo_float64(double x) { return x; }
_Float16 _mlir_ciface_echo_float16(_Float16 x) { return x; }
_Float16 _mlir_ciface_echo_bfloat16(_Float16 x) { return x; } /* the same register */

typedef struct {
  float re, im;
} c64;
void _mlir_ciface_conjugate(c64 *result, float re, float im) { *result = (c64){re, -im}; }

static i32_1 iota(int64_t n) {
  int32_t *data = malloc((size_t)(n ? n : 1) * sizeof *data);
  for (int64_t i = 0; i < n; ++i)
    data[i] = (int32_t)i;
  return (i32_1){data, data, 0, {n}, {1}};
}

void _mlir_ciface_iota(i32_1 *result, int64_t n) { *result = iota(n); }

struct pair {
  i32_1 first, second;
};
void _mlir_ciface_twice(struct pair *result, int64_t n) { result->first = result->second = iota(n); }

struct several {
  bool flag;
  f64_2 matrix;
  _Float16 half;
  c64 number;
  int8_t last;
};
void _mlir_ciface_several(struct several *result, int64_t n) {
  double *data = malloc(2 * (size_t)n * sizeof *data);
  for (int64_t i = 0; i < 2 * n; ++i)
    data[i] = (double)i / 2;
  *result = (struct several){true, {data, data, 0, {2, n}, {n, 1}}, (_Float16)1.5, {3, 4}, -5};
}

void _mlir_ciface_same(f32_1 *result, f32_1 *x) { *result = *x; }

void _mlir_ciface_tail(f32_1 *result, f32_1 *x) {
  *result = *x;
  result->offset += 1;
  result->sizes[0] -= 1;
}

void _mlir_ciface_constant(i32_1 *result) {
  static const int32_t data[3] = {7, 8, 9};
  *result = (i32_1){(int32_t *)(uintptr_t)0xdeadbeef, (int32_t *)(uintptr_t)data, 0, {3}, {1}};
}

void _mlir_ciface_device_made(f32_1 *result, int64_t n) {
  float *data = mgpuMemAlloc((uint64_t)n * sizeof *data, NULL, false);
  mgpuMemset32(data, 0x3f800000, (size_t)n, NULL); /* 1.0f */
  mgpuStreamSynchronize(NULL);
  *result = (f32_1){data, data, 0, {n}, {1}};
}

void _mlir_ciface_on_device(f32_1 *x) { mgpuMemset32(x->aligned, 0x40000000, (size_t)x->sizes[0], NULL); }

void _mlir_ciface_on_host(f32_1 *x) { x->aligned[0] = 3; }

void _mlir_ciface_bytes(raw_1 *x) { (void)x; }

void _mlir_ciface_fails(i32_1 *result, int64_t n) {
  *result = iota(n);
  mgpuMemcpy(NULL, result, 4, NULL);
}

/* Returns once another thread has written to the flag. */
/* Gives up after half a minute: who sets the flag may be waiting for this to return. */
void _mlir_ciface_wait_for(i64_1 *flag) {
  time_t end = time(NULL) + 30;
  while (__atomic_load_n(flag->aligned, __ATOMIC_ACQUIRE) == 0 && time(NULL) < end)
    ;
}

extern const unsigned char offload_images_begin[], offload_images_end[];

__attribute__((visibility("default"))) mgpuModuleSlot offload_modules[] = {
    {offload_images_begin, offload_images_end, "kernels", NULL},
    {NULL, NULL, NULL, NULL},
};
