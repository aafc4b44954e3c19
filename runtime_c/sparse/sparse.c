/* sparse.c: functions of the ABI that compute with sparse operands: C = op(A) op(B) + C. */
#include "sparse/sparse.h"
#include "abi/stream.h"
#include "core/error.h"

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

/* The arguments of an operation, and of which kinds its operands must be. */
struct request {
  const char *what;
  enum mgpu_sparse_kind kinds[3];
  bool compressed; /* A is 2:4 */
  int32_t mode_a, mode_b;
  void *operands[3];
  int32_t compute;
  void *stream;
};

/* Finds the operands and checks all that can be checked without reading their memory. Returns the backend's
 * operations, or NULL after mgpu_fail. */
static const struct mgpu_sparse_ops *resolve(const struct request *request, struct mgpu_sparse_call *call) {
  *call = (struct mgpu_sparse_call){.what = request->what,
                                    .mode_a = request->mode_a,
                                    .mode_b = request->mode_b,
                                    .compute = request->compute};
  const struct mgpu_sparse_ops *ops = mgpu_sparse_backend(request->stream, &call->place);
  if (!ops)
    return NULL;
  struct mgpu_sparse *found[3];
  for (int i = 0; i < 3; ++i) {
    found[i] = operand(request->what, request->operands[i], request->kinds[i], call->place.backend);
    if (!found[i])
      return NULL;
  }
  for (int i = 0; i < 3; ++i) {
    bool is_2to4 = found[i]->kind == MGPU_SPARSE_MATRIX && found[i]->format == MGPU_2TO4;
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
  call->a = found[0];
  call->b = found[1];
  call->c = found[2];
  return mgpu_sparse_check_call(call) ? NULL : ops;
}

/* SpMV, SpMM and SDDMM differ in their operands alone. */
static struct request product_of(enum mgpu_product product, int32_t ma, int32_t mb, void *a, void *b, void *c,
                                 int32_t ctp, void *stream) {
  static const struct request products[] = {
      [MGPU_SPMV] = {.what = "SpMV", .kinds = {MGPU_SPARSE_MATRIX, MGPU_DENSE_VECTOR, MGPU_DENSE_VECTOR}},
      [MGPU_SPMM] = {.what = "SpMM", .kinds = {MGPU_SPARSE_MATRIX, MGPU_DENSE_MATRIX, MGPU_DENSE_MATRIX}},
      [MGPU_SDDMM] = {.what = "SDDMM", .kinds = {MGPU_DENSE_MATRIX, MGPU_DENSE_MATRIX, MGPU_SPARSE_MATRIX}},
  };
  struct request request = products[product];
  request.mode_a = ma;
  request.mode_b = mb;
  request.operands[0] = a;
  request.operands[1] = b;
  request.operands[2] = c;
  request.compute = ctp;
  request.stream = stream;
  return request;
}

static intptr_t product_size(enum mgpu_product product, struct request request) {
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = resolve(&request, &call);
  size_t size = 0;
  return ops && ops->product_size(product, &call, &size) == 0 ? (intptr_t)size : 0;
}

static void multiply(enum mgpu_product product, struct request request, void *buffer) {
  struct mgpu_sparse_call call;
  const struct mgpu_sparse_ops *ops = resolve(&request, &call);
  if (ops)
    ops->product(product, &call, buffer);
}

intptr_t mgpuSpMVBufferSize(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *stream) {
  return product_size(MGPU_SPMV, product_of(MGPU_SPMV, ma, MGPU_AS_IS, a, x, y, ctp, stream));
}

void mgpuSpMV(int32_t ma, void *a, void *x, void *y, int32_t ctp, void *buf, void *stream) {
  multiply(MGPU_SPMV, product_of(MGPU_SPMV, ma, MGPU_AS_IS, a, x, y, ctp, stream), buf);
}

intptr_t mgpuSpMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  return product_size(MGPU_SPMM, product_of(MGPU_SPMM, ma, mb, a, b, c, ctp, stream));
}

void mgpuSpMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf, void *stream) {
  multiply(MGPU_SPMM, product_of(MGPU_SPMM, ma, mb, a, b, c, ctp, stream), buf);
}

intptr_t mgpuSDDMMBufferSize(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  return product_size(MGPU_SDDMM, product_of(MGPU_SDDMM, ma, mb, a, b, c, ctp, stream));
}

void mgpuSDDMM(int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *buf, void *stream) {
  multiply(MGPU_SDDMM, product_of(MGPU_SDDMM, ma, mb, a, b, c, ctp, stream), buf);
}

/* An SpGEMM's operands and its own handle. NULL after mgpu_fail. */
static const struct mgpu_sparse_ops *spgemm(void *s, struct request request, struct mgpu_sparse_call *call,
                                            struct mgpu_sparse **descriptor) {
  request.what = "SpGEMM";
  request.kinds[0] = request.kinds[1] = request.kinds[2] = MGPU_SPARSE_MATRIX;
  const struct mgpu_sparse_ops *ops = resolve(&request, call);
  if (!ops)
    return NULL;
  if (call->c->format != MGPU_CSR) {
    mgpu_fail(MGPU_ERROR_UNSUPPORTED, "SpGEMM computes into a CSR matrix only.");
    return NULL;
  }
  *descriptor = operand("SpGEMM", s, MGPU_SPGEMM, call->place.backend);
  return *descriptor ? ops : NULL;
}

/* The caller's buffer, or NULL when it asks for its size. False after mgpu_fail. */
static bool take_buffer(intptr_t bytes, void **buffer, size_t *size) {
  if (bytes == 0)
    *buffer = NULL;
  *size = *buffer ? (size_t)bytes : 0;
  if (!*buffer || bytes > 0)
    return true;
  mgpu_fail(MGPU_ERROR_INVALID, "SpGEMM has a buffer of %lld bytes.", (long long)bytes);
  return false;
}

intptr_t mgpuSpGEMMWorkEstimation(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                                  intptr_t bs, void *buf, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  size_t size;
  const struct request request = {
      .mode_a = ma, .mode_b = mb, .operands = {a, b, c}, .compute = ctp, .stream = stream};
  const struct mgpu_sparse_ops *ops = spgemm(s, request, &call, &descriptor);
  if (!ops || !take_buffer(bs, &buf, &size))
    return 0;
  return ops->spgemm_estimate(&call, descriptor, &size, buf) ? 0 : (intptr_t)size;
}

intptr_t mgpuSpGEMMCompute(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp,
                           intptr_t bsz2, void *buf2, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  size_t size;
  int64_t entries;
  const struct request request = {
      .mode_a = ma, .mode_b = mb, .operands = {a, b, c}, .compute = ctp, .stream = stream};
  const struct mgpu_sparse_ops *ops = spgemm(s, request, &call, &descriptor);
  if (!ops || !take_buffer(bsz2, &buf2, &size) ||
      ops->spgemm_compute(&call, descriptor, &size, buf2, &entries))
    return 0;
  if (buf2)
    call.c->pending = entries;
  return (intptr_t)size;
}

void mgpuSpGEMMCopy(void *s, int32_t ma, int32_t mb, void *a, void *b, void *c, int32_t ctp, void *stream) {
  struct mgpu_sparse_call call;
  struct mgpu_sparse *descriptor;
  const struct request request = {
      .mode_a = ma, .mode_b = mb, .operands = {a, b, c}, .compute = ctp, .stream = stream};
  const struct mgpu_sparse_ops *ops = spgemm(s, request, &call, &descriptor);
  if (!ops)
    return;
  if (!descriptor->state || call.c->pending < 0) {
    mgpu_fail(
        MGPU_ERROR_INVALID,
        "There is no result to copy: mgpuSpGEMMCompute comes first, once without and once with a buffer.");
    return;
  }
  if (ops->spgemm_copy(&call, descriptor) == 0) {
    call.c->stored = call.c->pending;
    call.c->pending = -1;
  }
}

/* 2:4. cuSPARSELt's compute types: 0 multiplies 16-bit floats and keeps sums in f32, 1 is i32. */
enum { LT_COMPUTE_16F = 0, LT_COMPUTE_32I = 1 };

static const struct mgpu_sparse_ops *product_2to4(struct request request, struct mgpu_sparse_call *call) {
  request.what = "2:4 SpMM";
  request.kinds[0] = MGPU_SPARSE_MATRIX;
  request.kinds[1] = request.kinds[2] = MGPU_DENSE_MATRIX;
  request.compressed = true;
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
  struct mgpu_sparse_call call;
  const struct request request = {.mode_a = ma,
                                  .mode_b = mb,
                                  .operands = {a, b, c},
                                  .compute = ctp == LT_COMPUTE_16F ? MGPU_F32 : MGPU_I32,
                                  .stream = stream};
  const struct mgpu_sparse_ops *ops = product_2to4(request, &call);
  if (!ops || ops->plan_2to4(&call, (enum mgpu_prune)prune_flag, sizes))
    return;
  call.a->planned = true;
  call.a->mode_a = ma;
  call.a->mode_b = mb;
  call.a->compute = call.compute;
}

void mgpuCuSparseLtSpMM(void *a, void *b, void *c, void *d_workspace, void *dA_compressed,
                        void *dA_compressedBuffer, void *stream) {
  const struct mgpu_sparse *matrix = mgpu_pending() ? NULL : mgpu_sparse_find(a);
  struct request request = {.operands = {a, b, c}, .compute = MGPU_F32, .stream = stream};
  if (matrix && matrix->kind == MGPU_SPARSE_MATRIX && matrix->format == MGPU_2TO4) {
    if (!matrix->planned) {
      mgpu_fail(MGPU_ERROR_INVALID,
                "2:4 SpMM needs mgpuCuSparseLtSpMMBufferSize before it, which takes the modes "
                "and the compute type.");
      return;
    }
    request.mode_a = matrix->mode_a;
    request.mode_b = matrix->mode_b;
    request.compute = matrix->compute;
  }
  struct mgpu_sparse_call call;
  void *const buffers[3] = {d_workspace, dA_compressed, dA_compressedBuffer};
  const struct mgpu_sparse_ops *ops = product_2to4(request, &call);
  if (ops)
    ops->product_2to4(&call, buffers);
}
