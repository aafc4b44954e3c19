/* sparse_math.c: host/sparse_loops.h for every type that sums are kept in. */
#include "host/sparse.h"

#include "core/error.h"

#include <stdlib.h>

struct c32 {
  float re, im;
};

struct c64 {
  double re, im;
};

static int by_value(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* Makes room for at least `needed` entries of the result. 0, or an error code after mgpu_fail. */
static int grow(struct mgpu_spgemm_result *result, int64_t needed, int64_t *room) {
  int64_t wanted = needed > 2 * *room ? needed : 2 * *room;
  int64_t *cols = realloc(result->cols, (size_t)wanted * sizeof *cols);
  if (cols)
    result->cols = cols;
  struct mgpu_wide *values = realloc(result->values, (size_t)wanted * sizeof *values);
  if (values)
    result->values = values;
  if (!cols || !values)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the %lld entries of a sparse product.",
                     (long long)needed);
  *room = wanted;
  return 0;
}

/* Integer sums wrap around. */
#define T int32_t
#define NAME(x) i32_##x
#define FROM(wide) ((int32_t)(wide).re)
#define WIDE(value) ((struct mgpu_wide){value, 0})
#define CONJUGATE(value) (value)
#define ADD_PRODUCT(sum, a, b) ((sum) = (int32_t)((uint32_t)(sum) + (uint32_t)(a) * (uint32_t)(b)))
#include "host/sparse_loops.h"

#define T float
#define NAME(x) f32_##x
#define FROM(wide) ((float)(wide).re)
#define WIDE(value) ((struct mgpu_wide){(double)(value), 0})
#define CONJUGATE(value) (value)
#define ADD_PRODUCT(sum, a, b) ((sum) += (a) * (b))
#include "host/sparse_loops.h"

#define T double
#define NAME(x) f64_##x
#define FROM(wide) ((wide).re)
#define WIDE(value) ((struct mgpu_wide){value, 0})
#define CONJUGATE(value) (value)
#define ADD_PRODUCT(sum, a, b) ((sum) += (a) * (b))
#include "host/sparse_loops.h"

/* Written out: the compiler's own complex product calls a support library. */
#define ADD_COMPLEX_PRODUCT(sum, a, b)                                                                       \
  ((sum).re += (a).re * (b).re - (a).im * (b).im, (sum).im += (a).re * (b).im + (a).im * (b).re)

#define T struct c32
#define NAME(x) c32_##x
#define FROM(wide) ((struct c32){(float)(wide).re, (float)(wide).im})
#define WIDE(value) ((struct mgpu_wide){(double)(value).re, (double)(value).im})
#define CONJUGATE(value) ((struct c32){(value).re, -(value).im})
#define ADD_PRODUCT ADD_COMPLEX_PRODUCT
#include "host/sparse_loops.h"

#define T struct c64
#define NAME(x) c64_##x
#define FROM(wide) ((struct c64){(wide).re, (wide).im})
#define WIDE(value) ((struct mgpu_wide){(value).re, (value).im})
#define CONJUGATE(value) ((struct c64){(value).re, -(value).im})
#define ADD_PRODUCT ADD_COMPLEX_PRODUCT
#include "host/sparse_loops.h"

const struct mgpu_sparse_math *mgpu_sparse_math_of(int compute) {
  switch ((enum mgpu_type)compute) {
  case MGPU_I32:
    return &i32_math;
  case MGPU_F16:
  case MGPU_BF16:
  case MGPU_F32:
    return &f32_math;
  case MGPU_F64:
    return &f64_math;
  case MGPU_C16:
  case MGPU_CBF16:
  case MGPU_C32:
    return &c32_math;
  case MGPU_C64:
    return &c64_math;
  case MGPU_I8:
    break;
  }
  return NULL;
}
