/* sparse.c: functions of the ABI that compute with sparse operands: C = op(A) op(B) + C. */
#include "sparse.h"
#include "error.h"
#include "stream.h"

/* Waits for the work on the stream, whose results the operands hold. False after mgpu_fail. */
static bool is_idle(void *stream) {
  struct mgpu_place place;
  return mgpu_stream_place(stream, &place) == 0 &&
         mgpu_backends[place.backend]->stream_sync(place.device, place.driver) == 0;
}

static const char *name_of(enum mgpu_sparse_kind kind) {
  static const char *const names[] = {"dense vector", "dense matrix", "sparse matrix", "SpGEMM"};
  return names[kind];
}

/* The operand of that kind and backend, or NULL after mgpu_fail. */
static struct mgpu_sparse *operand(const char *what, void *handle, enum mgpu_sparse_kind kind, int backend) {
  struct mgpu_sparse *found = mgpu_sparse_find(handle);
  if (!found)
    mgpu_fail(MGPU_ERROR_INVALID, "%s needs a %s; %p is none of this runtime, or has been destroyed already.",
              what, name_of(kind), handle);
  else if (found->kind != kind)
    mgpu_fail(MGPU_ERROR_INVALID, "%s needs a %s; %p is a %s.", what, name_of(kind), handle,
              name_of(found->kind));
  else if (found->backend != backend)
    mgpu_fail(MGPU_ERROR_INVALID, "%s runs on %s; the %s %p was made for %s.", what,
              mgpu_backends[backend]->name, name_of(kind), handle, mgpu_backends[found->backend]->name);
  else
    return found;
  return NULL;
}

/* One operation from its arguments: finds the operands and checks all that can be checked without reading
 * their memory. Returns the backend's operations, or NULL after mgpu_fail. */
struct request {
  const char *what;
  enum mgpu_sparse_kind a_kind, b_kind, c_kind;
  bool compressed; /* A is 2:4 */
  void *a, *b, *c;
  void *stream;
};

static const struct mgpu_sparse_ops *resolve(const struct request *request, struct mgpu_sparse_call *call) {
  int backend;
  const struct mgpu_sparse_ops *ops = mgpu_sparse_backend(request->stream, &backend);
  if (!ops)
    return NULL;
  call->a = operand(request->what, request->a, request->a_kind, backend);
  call->b = call->a ? operand(request->what, request->b, request->b_kind, backend) : NULL;
  call->c = call->b ? operand(request->what, request->c, request->c_kind, backend) : NULL;
  if (!call->c)
    return NULL;
  const struct mgpu_sparse *const operands[] = {call->a, call->b, call->c};
  for (int i = 0; i < 3; ++i) {
    bool is_2to4 = operands[i]->kind == MGPU_SPARSE_MATRIX && operands[i]->format == MGPU_2TO4;
    if (is_2to4 != (request->compressed && i == 0)) {
      mgpu_fail(MGPU_ERROR_INVALID,
                is_2to4
                    ? "%s cannot have a 2:4 sparse matrix as its operand %c; those are multiplied by a dense "
                      "matrix, with three buffers."
                    : "%s needs a 2:4 sparse matrix as its operand %c.",
                request->what, "ABC"[i]);
      return NULL;
    }
  }
  return mgpu_sparse_check_call(request->what, call) ? NULL : ops;
}

static const struct mgpu_sparse_ops *spmv(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *stream,
                                          struct mgpu_sparse_call *call) {
  const struct request request = {
      "SpMV", MGPU_SPARSE_MATRIX, MGPU_DENSE_VECTOR, MGPU_DENSE_VECTOR, false, a, x, y, stream};
  *call = (struct mgpu_sparse_call){.mode_a = ma, .compute = ctp};
  return resolve(&request, call);
}

intptr_t mgpuSpMVBufferSize(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *stream) {
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = spmv(ma, a, x, y, ctp, stream, &call);
  return ops ? (intptr_t)ops->workspace : 0;
}

void mgpuSpMV(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *buf, void *stream) {
  (void)buf;
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = spmv(ma, a, x, y, ctp, stream, &call);
  if (ops && is_idle(stream))
    ops->spmm(&call);
}

static const struct mgpu_sparse_ops *spmm(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                          void *stream, struct mgpu_sparse_call *call) {
  const struct request request = {
      "SpMM", MGPU_SPARSE_MATRIX, MGPU_DENSE_MATRIX, MGPU_DENSE_MATRIX, false, a, b, c, stream};
  *call = (struct mgpu_sparse_call){.mode_a = ma, .mode_b = mb, .compute = ctp};
  return resolve(&request, call);
}

intptr_t mgpuSpMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = spmm(ma, mb, a, b, c, ctp, stream, &call);
  return ops ? (intptr_t)ops->workspace : 0;
}

void mgpuSpMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf, void *stream) {
  (void)buf;
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = spmm(ma, mb, a, b, c, ctp, stream, &call);
  if (ops && is_idle(stream))
    ops->spmm(&call);
}

static const struct mgpu_sparse_ops *sddmm(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                           void *stream, struct mgpu_sparse_call *call) {
  const struct request request = {
      "SDDMM", MGPU_DENSE_MATRIX, MGPU_DENSE_MATRIX, MGPU_SPARSE_MATRIX, false, a, b, c, stream};
  *call = (struct mgpu_sparse_call){.mode_a = ma, .mode_b = mb, .compute = ctp};
  return resolve(&request, call);
}

intptr_t mgpuSDDMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = sddmm(ma, mb, a, b, c, ctp, stream, &call);
  return ops ? (intptr_t)ops->workspace : 0;
}

void mgpuSDDMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf, void *stream) {
  (void)buf;
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = sddmm(ma, mb, a, b, c, ctp, stream, &call);
  if (ops && is_idle(stream))
    ops->sddmm(&call);
}

struct spgemm {
  void *s;
  int32_t ma, mb;
  void *a, *b, *c;
  int32_t ctp;
  void *stream;
};

static const struct mgpu_sparse_ops *spgemm(const struct spgemm *from, struct mgpu_sparse_call *call,
                                            struct mgpu_sparse **descriptor) {
  const struct request request = {
      "SpGEMM", MGPU_SPARSE_MATRIX, MGPU_SPARSE_MATRIX, MGPU_SPARSE_MATRIX, false, from->a, from->b,
      from->c,  from->stream};
  *call = (struct mgpu_sparse_call){.mode_a = from->ma, .mode_b = from->mb, .compute = from->ctp};
  const struct mgpu_sparse_ops *ops = resolve(&request, call);
  if (!ops)
    return NULL;
  if (call->c->format != MGPU_CSR) {
    mgpu_fail(MGPU_ERROR_UNSUPPORTED, "SpGEMM computes into a CSR matrix only.");
    return NULL;
  }
  *descriptor = operand("SpGEMM", from->s, MGPU_SPGEMM, call->c->backend);
  return *descriptor ? ops : NULL;
}

/* Whether the caller has the buffer already: without one it asks for its size. */
static bool has_workspace(const struct mgpu_sparse_ops *ops, intptr_t size, const void *buffer) {
  if (!buffer || size == 0)
    return false;
  if (size > 0 && (size_t)size >= ops->workspace)
    return true;
  mgpu_fail(MGPU_ERROR_INVALID, "SpGEMM has a buffer of %lld bytes; it needs %zu.", (long long)size,
            ops->workspace);
  return false;
}

intptr_t mgpuSpGEMMWorkEstimation(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                  intptr_t bs, void *buf, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  const struct spgemm from = {s, ma, mb, a, b, c, ctp, stream};
  const struct mgpu_sparse_ops *ops = spgemm(&from, &call, &descriptor);
  if (!ops)
    return 0;
  return has_workspace(ops, bs, buf) || !mgpu_pending() ? (intptr_t)ops->workspace : 0;
}

intptr_t mgpuSpGEMMCompute(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                           intptr_t bsz2, void *buf2, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  const struct spgemm from = {s, ma, mb, a, b, c, ctp, stream};
  const struct mgpu_sparse_ops *ops = spgemm(&from, &call, &descriptor);
  if (!ops)
    return 0;
  if (has_workspace(ops, bsz2, buf2) && is_idle(stream)) {
    int64_t entries;
    if (ops->spgemm_compute(&call, descriptor, &entries) == 0)
      call.c->pending = entries;
  }
  return mgpu_pending() ? 0 : (intptr_t)ops->workspace;
}

void mgpuSpGEMMCopy(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  const struct spgemm from = {s, ma, mb, a, b, c, ctp, stream};
  const struct mgpu_sparse_ops *ops = spgemm(&from, &call, &descriptor);
  if (!ops)
    return;
  if (!descriptor->state || call.c->pending < 0) {
    mgpu_fail(
        MGPU_ERROR_INVALID,
        "There is no result to copy: mgpuSpGEMMCompute comes first, once without and once with a buffer.");
    return;
  }
  if (is_idle(stream) && ops->spgemm_copy(&call, descriptor) == 0) {
    call.c->stored = call.c->pending;
    call.c->pending = -1;
  }
}

/* 2:4. cuSPARSELt's compute types: 0 multiplies 16-bit floats and keeps sums in f32, 1 is i32. */
enum { LT_COMPUTE_16F = 0, LT_COMPUTE_32I = 1 };

static const struct mgpu_sparse_ops *spmm_2to4(void *a, void *b, void *c, void *stream,
                                               struct mgpu_sparse_call *call) {
  const struct request request = {
      "2:4 SpMM", MGPU_SPARSE_MATRIX, MGPU_DENSE_MATRIX, MGPU_DENSE_MATRIX, true, a, b, c, stream};
  const struct mgpu_sparse_ops *ops = resolve(&request, call);
  if (!ops)
    return NULL;
  int64_t k = call->mode_a == MGPU_AS_IS ? call->a->cols : call->a->rows;
  if (k % 4 == 0)
    return ops;
  mgpu_fail(MGPU_ERROR_INVALID,
            "2:4 SpMM sums over %lld products; it must be a multiple of 4, for 2 of each 4 are kept.",
            (long long)k);
  return NULL;
}

void mgpuCuSparseLtSpMMBufferSize(void *bs, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                  int32_t prune_flag, void *stream) {
  int64_t *sizes = bs;
  if (!sizes) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuCuSparseLtSpMMBufferSize needs a place for three sizes.");
    return;
  }
  sizes[0] = sizes[1] = sizes[2] = 0;
  if (mgpu_pending())
    return;
  if (ctp != LT_COMPUTE_16F && ctp != LT_COMPUTE_32I) {
    mgpu_fail(MGPU_ERROR_UNSUPPORTED, "2:4 SpMM has the compute type %d; known are 0 (f16) and 1 (i32).",
              ctp);
    return;
  }
  if (prune_flag < 0 || prune_flag > 2) {
    mgpu_fail(MGPU_ERROR_INVALID, "2:4 SpMM has the pruning flag %d; known are 0, 1 and 2.", prune_flag);
    return;
  }
  struct mgpu_sparse_call call = {
      .mode_a = ma, .mode_b = mb, .compute = ctp == LT_COMPUTE_16F ? MGPU_F32 : MGPU_I32};
  const struct mgpu_sparse_ops *ops = spmm_2to4(a, b, c, stream, &call);
  if (!ops || (prune_flag > 0 && (!is_idle(stream) || ops->prune(&call))))
    return;
  call.a->planned = true;
  call.a->mode_a = ma;
  call.a->mode_b = mb;
  call.a->compute = call.compute;
  sizes[0] = sizes[1] = sizes[2] = (int64_t)ops->workspace;
}

void mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *d_workspace, void *dA_compressed,
                        void *dA_compressedBuffer, void *stream) {
  (void)d_workspace;
  (void)dA_compressed;
  (void)dA_compressedBuffer;
  const struct mgpu_sparse *matrix = mgpu_pending() ? NULL : mgpu_sparse_find(a);
  struct mgpu_sparse_call call = {.compute = MGPU_F32};
  if (matrix && matrix->kind == MGPU_SPARSE_MATRIX && matrix->format == MGPU_2TO4) {
    if (!matrix->planned) {
      mgpu_fail(MGPU_ERROR_INVALID,
                "2:4 SpMM needs mgpuCuSparseLtSpMMBufferSize before it, which takes the modes "
                "and the compute type.");
      return;
    }
    call.mode_a = matrix->mode_a;
    call.mode_b = matrix->mode_b;
    call.compute = matrix->compute;
  }
  const struct mgpu_sparse_ops *ops = spmm_2to4(a, b, c, stream, &call);
  if (ops && is_idle(stream))
    ops->spmm_2to4(&call);
}
