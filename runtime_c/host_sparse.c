/* host_sparse.c: sparse operations on the CPU, plainly: every matrix becomes a list of entries, and each
 * operation is a loop over one. Work runs at the call, on the calling thread. */
#include "host_sparse.h"

#include "error.h"

#include <stdlib.h>

/* Nothing is needed; clients can allocate this much and pass it. */
enum { WORKSPACE = 16 };

static int spmm(const struct mgpu_sparse_call *call) {
  struct mgpu_entries a;
  int failure = mgpu_entries_of(call->a, call->mode_a, &a);
  if (!failure)
    failure = mgpu_sparse_math_of(call->compute)->spmm(call, &a);
  mgpu_entries_free(&a);
  return failure;
}

static int spmm_2to4(const struct mgpu_sparse_call *call) {
  int failure = mgpu_2to4_check(call);
  return failure ? failure : spmm(call);
}

static int sddmm(const struct mgpu_sparse_call *call) {
  struct mgpu_entries c;
  int failure = mgpu_entries_of(call->c, MGPU_AS_IS, &c);
  if (!failure)
    failure = mgpu_sparse_math_of(call->compute)->sddmm(call, &c);
  mgpu_entries_free(&c);
  return failure;
}

void mgpu_spgemm_result_free(struct mgpu_spgemm_result *result) {
  if (!result)
    return;
  free(result->positions);
  free(result->cols);
  free(result->values);
  free(result);
}

static void release(struct mgpu_sparse *spgemm) {
  mgpu_spgemm_result_free(spgemm->state);
  spgemm->state = NULL;
}

static int sorted_entries(const struct mgpu_sparse *matrix, int mode, struct mgpu_entries *entries,
                          int64_t **positions) {
  int failure = mgpu_entries_of(matrix, mode, entries);
  return failure ? failure
                 : mgpu_entries_by_row(entries, mode == MGPU_AS_IS ? matrix->rows : matrix->cols, positions);
}

static int spgemm_compute(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, int64_t *entries) {
  release(spgemm);
  struct mgpu_spgemm_input input = {.rows = call->c->rows, .cols = call->c->cols};
  struct mgpu_spgemm_result *result = calloc(1, sizeof *result);
  int failure = result ? 0 : mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a sparse product.");
  if (!failure) {
    result->into = call->c;
    result->positions = mgpu_sparse_room(input.rows + 1, sizeof *result->positions);
    failure = result->positions ? 0 : mgpu_pending();
  }
  if (!failure)
    failure = sorted_entries(call->a, call->mode_a, &input.a, &input.a_rows);
  if (!failure)
    failure = sorted_entries(call->b, call->mode_b, &input.b, &input.b_rows);
  if (!failure)
    failure = sorted_entries(call->c, MGPU_AS_IS, &input.c, &input.c_rows);
  if (!failure) {
    result->positions[0] = 0;
    failure = mgpu_sparse_math_of(call->compute)->spgemm(call, &input, result);
  }
  mgpu_entries_free(&input.a);
  mgpu_entries_free(&input.b);
  mgpu_entries_free(&input.c);
  free(input.a_rows);
  free(input.b_rows);
  free(input.c_rows);
  if (failure) {
    mgpu_spgemm_result_free(result);
    return failure;
  }
  spgemm->state = result;
  *entries = result->positions[input.rows];
  return 0;
}

static int spgemm_copy(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm) {
  const struct mgpu_spgemm_result *result = spgemm->state;
  struct mgpu_sparse *c = call->c;
  if (result->into != c || result->positions[c->rows] != c->pending)
    return mgpu_fail(MGPU_ERROR_INVALID, "The result of this SpGEMM was computed for another matrix.");
  if (!c->positions || (c->pending && (!c->indices || !c->values)))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The matrix that an SpGEMM is copied to has no memory for %lld entries; "
                     "mgpuSetCsrPointers gives it.",
                     (long long)c->pending);
  bool fits = true;
  for (int64_t i = 0; i <= c->rows; ++i)
    fits = mgpu_index_store(c->position_type, c->positions, i, result->positions[i]) && fits;
  for (int64_t i = 0; i < c->pending; ++i) {
    fits = mgpu_index_store(c->index_type, c->indices, i, result->cols[i]) && fits;
    mgpu_number_store(c->type, c->values, i, result->values[i]);
  }
  if (!fits)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The result of an SpGEMM has %lld entries in %lld columns; its indices need more bits.",
                     (long long)c->pending, (long long)c->cols);
  return 0;
}

const struct mgpu_sparse_ops mgpu_host_sparse = {
    .workspace = WORKSPACE,
    .spmm = spmm,
    .sddmm = sddmm,
    .spgemm_compute = spgemm_compute,
    .spgemm_copy = spgemm_copy,
    .prune = mgpu_2to4_prune,
    .spmm_2to4 = spmm_2to4,
    .release = release,
};
