/* sparse_2to4.c: matrices in which at most two of each four values along the summed dimension are not 0.
 */
#include "core/error.h"
#include "host/sparse.h"

#include <math.h>

/* How a matrix divides into groups of four: the summed dimension is a row's, or a column's when transposed.
 */
struct groups {
  int64_t lines, per_line, line_step, value_step;
};

static struct groups groups_of(const struct mgpu_sparse_call *call) {
  const struct mgpu_sparse *a = call->a;
  if (call->mode_a == MGPU_AS_IS)
    return (struct groups){a->rows, a->cols / 4, a->cols, 1};
  return (struct groups){a->cols, a->rows / 4, 1, a->cols};
}

/* What is no number counts as infinitely large: it stays, and shows in the product as it does in a dense one.
 */
static double magnitude(const struct mgpu_sparse *a, int64_t at) {
  double value = mgpu_number_load(a->type, a->values, at).re;
  return isnan(value) ? INFINITY : value < 0 ? -value : value;
}

int mgpu_2to4_prune(const struct mgpu_sparse_call *call) {
  const struct groups groups = groups_of(call);
  for (int64_t i = 0; i < groups.lines; ++i)
    for (int64_t j = 0; j < groups.per_line; ++j) {
      int64_t first = i * groups.line_step + 4 * j * groups.value_step;
      double sizes[4];
      for (int k = 0; k < 4; ++k)
        sizes[k] = magnitude(call->a, first + k * groups.value_step);
      for (int k = 0; k < 4; ++k) {
        int larger = 0; /* of equal ones the first counts as larger */
        for (int other = 0; other < 4; ++other)
          larger += sizes[other] > sizes[k] || (sizes[other] == sizes[k] && other < k);
        if (larger >= 2)
          mgpu_number_store(call->a->type, call->a->values, first + k * groups.value_step,
                            (struct mgpu_wide){0, 0});
      }
    }
  return 0;
}

int mgpu_2to4_check(const struct mgpu_sparse_call *call) {
  const struct groups groups = groups_of(call);
  for (int64_t i = 0; i < groups.lines; ++i)
    for (int64_t j = 0; j < groups.per_line; ++j) {
      int64_t first = i * groups.line_step + 4 * j * groups.value_step;
      int used = 0;
      for (int k = 0; k < 4; ++k)
        used += magnitude(call->a, first + k * groups.value_step) != 0;
      if (used > 2)
        return mgpu_fail(
            MGPU_ERROR_INVALID,
            "The matrix is not 2:4 sparse: %d of the four values from element %lld on are not 0; have "
            "it pruned.",
            used, (long long)first);
    }
  return 0;
}
