/* sparse.h: the parts of the host backend's sparse operations. */
#ifndef MGPU_INTERNAL_HOST_SPARSE_H
#define MGPU_INTERNAL_HOST_SPARSE_H

#include "sparse/numbers.h"
#include "sparse/sparse.h"

/* host/sparse_entries.c: a sparse matrix of any format as a list. Entry i is values[slots[i]] at (rows[i],
 * cols[i]), after the mode; every index is checked. */
struct mgpu_entries {
  int64_t count;
  int64_t *rows, *cols, *slots; /* one piece of memory, owned through `rows` */
};

/* 0, or an error code after mgpu_fail. */
int mgpu_entries_of(const struct mgpu_sparse *matrix, int mode, struct mgpu_entries *entries);
/* Sorts by row, keeping the order within a row; *positions (owned by the caller) has where each of `rows`
 * rows begins, and the end. 0, or an error code after mgpu_fail. */
int mgpu_entries_by_row(struct mgpu_entries *entries, int64_t rows, int64_t **positions);
void mgpu_entries_free(struct mgpu_entries *entries);

/* The three matrices of an SpGEMM, each sorted by row. */
struct mgpu_spgemm_input {
  struct mgpu_entries a, b, c;
  int64_t *a_rows, *b_rows, *c_rows; /* positions */
  int64_t rows, cols;                /* of the result */
};

/* The result of an SpGEMM between compute and copy: rows sorted by column. */
struct mgpu_spgemm_result {
  const struct mgpu_sparse *into;
  int64_t *positions; /* one more than rows */
  int64_t *cols;
  struct mgpu_wide *values;
};

void mgpu_spgemm_result_free(struct mgpu_spgemm_result *result);

/* Memory for that many elements, at least one; NULL after mgpu_fail. */
void *mgpu_sparse_room(int64_t count, size_t bytes);

/* host/sparse_math.c: the loops, once per type that sums are kept in. Each returns 0, or an error code after
 * mgpu_fail, before it has written anything. */
struct mgpu_sparse_math {
  /* C += op(A) B for each entry of A. */
  int (*spmm)(const struct mgpu_sparse_call *call, const struct mgpu_entries *a);
  /* C += op(A) op(B) at each entry of C. */
  int (*sddmm)(const struct mgpu_sparse_call *call, const struct mgpu_entries *c);
  /* op(A) op(B) + C. */
  int (*spgemm)(const struct mgpu_sparse_call *call, const struct mgpu_spgemm_input *input,
                struct mgpu_spgemm_result *result);
};

/* NULL for types that nothing is computed in. */
const struct mgpu_sparse_math *mgpu_sparse_math_of(int compute);

/* host/sparse_2to4.c: see struct mgpu_sparse_ops. */
int mgpu_2to4_prune(const struct mgpu_sparse_call *call);
/* 0 if at most two of each four values are not 0, else an error code after mgpu_fail. */
int mgpu_2to4_check(const struct mgpu_sparse_call *call);

#endif
