/* sparse.c: the operations of sparse/sparse.h that trace: what was computed, from what, on which stream. */
#include "sparse/sparse.h"

#include "trace/call.h"
#include "trace/slots.h"

static const struct mgpu_sparse_ops *untraced(int backend) { return mgpu_untraced[backend]->sparse; }

static void tell(struct mgpu_text *text, const char *key, const struct mgpu_sparse *operand, int mode) {
  char words[160];
  struct mgpu_text told = {words, sizeof words, 0};
  mgpu_text_add(&told, "%lld x %lld ", (long long)operand->rows, (long long)operand->cols);
  mgpu_sparse_tell(&told, operand, mode);
  mgpu_text_add(text, ",\"%s\":\"%s\"", key, words);
  if (operand->kind == MGPU_SPARSE_MATRIX)
    mgpu_text_add(text, ",\"%s_entries\":%lld", key,
                  (long long)(operand->stored * operand->block_rows * operand->block_cols));
}

/* The clock starts. `phase` is a part of the operation, or "". `work`: something goes on the stream. */
static void start(struct mgpu_trace_call *call, const struct mgpu_sparse_call *what, const char *phase,
                  bool work) {
  char name[64];
  struct mgpu_text text = {name, sizeof name, 0};
  mgpu_text_add(&text, "%s%s%s", what->what, *phase ? ", " : "", phase);
  mgpu_trace_call_describe(call, what->place.backend, what->place.device, "sparse", name);
  mgpu_trace_call_on_stream(call, what->place.driver);
  tell(&call->detail, "a", what->a, what->mode_a);
  tell(&call->detail, "b", what->b, what->mode_b);
  tell(&call->detail, "c", what->c, MGPU_AS_IS);
  mgpu_text_add(&call->detail, ",\"computed_in\":\"%s\"", mgpu_sparse_type_name(what->compute));
  mgpu_trace_call_start_at_once(call, work ? what->what : NULL);
}

static int product_size(enum mgpu_product product, const struct mgpu_sparse_call *what, size_t *size) {
  struct mgpu_trace_call call;
  start(&call, what, "size", false);
  return mgpu_trace_call_stop(&call, untraced(what->place.backend)->product_size(product, what, size));
}

static int product(enum mgpu_product product, const struct mgpu_sparse_call *what, void *workspace) {
  struct mgpu_trace_call call;
  start(&call, what, "", true);
  return mgpu_trace_call_stop(&call, untraced(what->place.backend)->product(product, what, workspace));
}

static int spgemm_estimate(const struct mgpu_sparse_call *what, struct mgpu_sparse *spgemm, size_t *size,
                           void *buffer) {
  struct mgpu_trace_call call;
  start(&call, what, buffer ? "estimate" : "size of estimate", buffer != NULL);
  return mgpu_trace_call_stop(&call,
                              untraced(what->place.backend)->spgemm_estimate(what, spgemm, size, buffer));
}

static int spgemm_compute(const struct mgpu_sparse_call *what, struct mgpu_sparse *spgemm, size_t *size,
                          void *buffer, int64_t *entries) {
  struct mgpu_trace_call call;
  start(&call, what, buffer ? "compute" : "size of compute", buffer != NULL);
  return mgpu_trace_call_stop(
      &call, untraced(what->place.backend)->spgemm_compute(what, spgemm, size, buffer, entries));
}

static int spgemm_copy(const struct mgpu_sparse_call *what, struct mgpu_sparse *spgemm) {
  struct mgpu_trace_call call;
  start(&call, what, "copy", true);
  return mgpu_trace_call_stop(&call, untraced(what->place.backend)->spgemm_copy(what, spgemm));
}

static int plan_2to4(const struct mgpu_sparse_call *what, enum mgpu_prune prune, int64_t sizes[3]) {
  struct mgpu_trace_call call;
  start(&call, what, prune == MGPU_PRUNE_NONE ? "sizes" : "prune", prune != MGPU_PRUNE_NONE);
  return mgpu_trace_call_stop(&call, untraced(what->place.backend)->plan_2to4(what, prune, sizes));
}

static int product_2to4(const struct mgpu_sparse_call *what, void *const buffers[3]) {
  struct mgpu_trace_call call;
  start(&call, what, "", true);
  return mgpu_trace_call_stop(&call, untraced(what->place.backend)->product_2to4(what, buffers));
}

void mgpu_traced_sparse(int backend, struct mgpu_sparse_ops *ops) {
  *ops = *untraced(backend);
  ops->product_size = product_size;
  ops->product = product;
  ops->spgemm_estimate = spgemm_estimate;
  ops->spgemm_compute = spgemm_compute;
  ops->spgemm_copy = spgemm_copy;
  ops->plan_2to4 = plan_2to4;
  ops->product_2to4 = product_2to4;
}
