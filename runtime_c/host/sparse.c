/* sparse.c: sparse operations on the CPU, plainly: every matrix becomes a list of entries, and each
 * operation is a loop over one. Work is done when the call returns. */
#include "host/sparse.h"

#include "core/error.h"
#include "core/thread.h"
#include "host/schedule.h"
#include "host/turns.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

/* Nothing is needed; clients can allocate this much and pass it. */
enum { WORKSPACE = 16 };

/* A piece of work: 0, or an error code after mgpu_fail. */
typedef int work(const struct mgpu_sparse_call *call, void *data);

struct job {
  work *work;
  const struct mgpu_sparse_call *call;
  void *data;
  bool done, abandoned;
  mgpuKeptError error;
  struct mgpu_turn_times times;
};

/* Whichever thread does it, the error is the caller's, and the time that of the caller's trace. */
static int run_job(void *data, struct mgpu_text *why) {
  struct job *job = *(struct job **)data;
  (void)why;
  if (job->abandoned) {
    free(job);
    return 0;
  }
  if (mgpu_trace_on)
    job->times.began = mgpu_trace_now();
  mgpuErrorExchange(&job->error);
  job->work(job->call, job->data);
  mgpuErrorExchange(&job->error);
  if (mgpu_trace_on)
    job->times.ended = mgpu_trace_now();
  job->done = true;
  return 0;
}

static int put_off(const struct mgpu_sparse_call *call, work *work, void *data) {
  const struct mgpu_place *place = &call->place;
  struct job *job = calloc(1, sizeof *job);
  void *pointer = job ? mgpu_host_schedule_data(sizeof job) : NULL;
  if (!pointer) {
    free(job);
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a sparse operation.");
  }
  *job = (struct job){.work = work, .call = call, .data = data};
  memcpy(pointer, &job, sizeof job);
  int failure = mgpu_host_schedule_put(place->driver, run_job, pointer);
  if (failure) {
    free(job);
    return failure;
  }
  failure = mgpu_backends[place->backend]->stream_sync(place->device, place->driver);
  if (!job->done) { /* it comes after a kernel whose block has called this */
    job->abandoned = true;
    return failure;
  }
  mgpu_thread()->times = job->times;
  if (job->error.code)
    failure = mgpu_fail(job->error.code, "%s", job->error.message);
  free(job);
  return failure;
}

/* Does a piece of work behind what is on the stream, in its turn, and waits for it. 0, or an error code after
 * mgpu_fail. */
static int on_stream(const struct mgpu_sparse_call *call, work *work, void *data) {
  const struct mgpu_place *place = &call->place;
  if (mgpu_host_schedule_on())
    return put_off(call, work, data);
  struct mgpu_host_turn turn;
  mgpu_host_turn_begin(&turn, place->own ? NULL : place->driver);
  int failure = work(call, data);
  mgpu_host_turn_end(&turn);
  return failure;
}

static int product_size(enum mgpu_product product, const struct mgpu_sparse_call *call, size_t *size) {
  (void)product;
  (void)call;
  *size = WORKSPACE;
  return 0;
}

static int spmm(const struct mgpu_sparse_call *call, void *data) {
  (void)data;
  struct mgpu_entries a;
  int failure = mgpu_entries_of(call->a, call->mode_a, &a);
  if (!failure)
    failure = mgpu_sparse_math_of(call->compute)->spmm(call, &a);
  mgpu_entries_free(&a);
  return failure;
}

static int sddmm(const struct mgpu_sparse_call *call, void *data) {
  (void)data;
  struct mgpu_entries c;
  int failure = mgpu_entries_of(call->c, MGPU_AS_IS, &c);
  if (!failure)
    failure = mgpu_sparse_math_of(call->compute)->sddmm(call, &c);
  mgpu_entries_free(&c);
  return failure;
}

static int product(enum mgpu_product product, const struct mgpu_sparse_call *call, void *workspace) {
  (void)workspace;
  return on_stream(call, product == MGPU_SDDMM ? sddmm : spmm, NULL);
}

static int prune_2to4(const struct mgpu_sparse_call *call, void *data) {
  (void)data;
  return mgpu_2to4_prune(call);
}

static int plan_2to4(const struct mgpu_sparse_call *call, enum mgpu_prune prune, int64_t sizes[3]) {
  int failure = prune == MGPU_PRUNE_NONE ? 0 : on_stream(call, prune_2to4, NULL);
  sizes[0] = sizes[1] = sizes[2] = failure ? 0 : WORKSPACE;
  return failure;
}

static int checked_2to4(const struct mgpu_sparse_call *call, void *data) {
  int failure = mgpu_2to4_check(call);
  return failure ? failure : spmm(call, data);
}

static int product_2to4(const struct mgpu_sparse_call *call, void *const buffers[3]) {
  (void)buffers;
  return on_stream(call, checked_2to4, NULL);
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

static int multiply(const struct mgpu_sparse_call *call, void *data) {
  struct mgpu_sparse *spgemm = data;
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
  return 0;
}

/* Whether there is a buffer that is large enough; *size becomes what is needed. */
static int spgemm_buffer(size_t *size, const void *buffer) {
  int failure = buffer ? mgpu_sparse_check_buffer("SpGEMM", *size, WORKSPACE) : 0;
  *size = WORKSPACE;
  return failure;
}

static int spgemm_estimate(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                           void *buffer) {
  (void)call;
  (void)spgemm;
  return spgemm_buffer(size, buffer);
}

static int spgemm_compute(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm, size_t *size,
                          void *buffer, int64_t *entries) {
  int failure = spgemm_buffer(size, buffer);
  if (failure || !buffer)
    return failure;
  failure = on_stream(call, multiply, spgemm);
  if (!failure)
    *entries = ((const struct mgpu_spgemm_result *)spgemm->state)->positions[call->c->rows];
  return failure;
}

static int copy_result(const struct mgpu_sparse_call *call, void *data) {
  const struct mgpu_spgemm_result *result = ((const struct mgpu_sparse *)data)->state;
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

static int spgemm_copy(const struct mgpu_sparse_call *call, struct mgpu_sparse *spgemm) {
  return on_stream(call, copy_result, spgemm);
}

const struct mgpu_sparse_ops mgpu_host_sparse = {
    .product_size = product_size,
    .product = product,
    .spgemm_estimate = spgemm_estimate,
    .spgemm_compute = spgemm_compute,
    .spgemm_copy = spgemm_copy,
    .plan_2to4 = plan_2to4,
    .product_2to4 = product_2to4,
    .release = release,
};
