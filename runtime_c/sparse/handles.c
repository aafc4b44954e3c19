/* handles.c: functions of the ABI that make, change and destroy sparse and dense operands.
 *
 * Operands name the caller's memory and copy nothing. They are made and destroyed at the call; streams only
 * say which backend they are for. */
#include "abi/guard.h"
#include "abi/stream.h"
#include "core/error.h"
#include "sparse/sparse.h"

#include <stdlib.h>

const struct mgpu_sparse_ops *mgpu_sparse_backend(void *stream, struct mgpu_place *place) {
  return mgpu_pending() || mgpu_stream_place(stream, place) ? NULL : mgpu_backends[place->backend]->sparse;
}

static void release(struct mgpu_sparse *operand) {
  if (operand && operand->state)
    mgpu_backends[operand->backend]->sparse->release(operand);
  free(operand);
}

/* Makes an operand for the stream's backend. Returns what the ABI knows it by. */
static void *make(struct mgpu_sparse operand, void *handle, void *stream) {
  struct mgpu_place place;
  if (!mgpu_sparse_backend(stream, &place))
    return NULL;
  operand.backend = place.backend;
  operand.pending = -1;
  operand.guard = mgpu_guard_number();
  release(handle ? mgpu_sparse_take(handle) : NULL); /* a former operand in the same buffer */
  struct mgpu_sparse *made = mgpu_sparse_add(&operand, handle);
  return made ? (void *)(uintptr_t)made->handle : NULL;
}

void mgpu_sparse_destroy_under(uint64_t guard) {
  for (struct mgpu_sparse *operand; (operand = mgpu_sparse_take_under(guard));)
    release(operand);
}

static void destroy(void *handle, bool (*right)(enum mgpu_sparse_kind), const char *what) {
  if (!handle)
    return;
  const struct mgpu_sparse *found = mgpu_sparse_find(handle);
  if (!found || !right(found->kind)) {
    mgpu_fail(MGPU_ERROR_INVALID, "%p is no %s of this runtime, or has been destroyed already.", handle,
              what);
    return;
  }
  release(mgpu_sparse_take(handle));
}

static bool is_dense(enum mgpu_sparse_kind kind) {
  return kind == MGPU_DENSE_VECTOR || kind == MGPU_DENSE_MATRIX;
}

static bool is_matrix(enum mgpu_sparse_kind kind) { return kind == MGPU_SPARSE_MATRIX; }

static bool is_spgemm(enum mgpu_sparse_kind kind) { return kind == MGPU_SPGEMM; }

static void *make_dense(enum mgpu_sparse_kind kind, intptr_t rows, intptr_t cols, void *values, int32_t type,
                        void *handle, void *stream) {
  const char *what = kind == MGPU_DENSE_VECTOR ? "A dense vector" : "A dense matrix";
  if (mgpu_pending() || mgpu_sparse_check_dense(what, rows, cols) || mgpu_sparse_check_type(what, type))
    return NULL;
  if (!values && rows && cols) {
    mgpu_fail(MGPU_ERROR_INVALID, "%s of %lld x %lld has NULL as its memory.", what, (long long)rows,
              (long long)cols);
    return NULL;
  }
  struct mgpu_sparse operand = {.kind = kind, .rows = rows, .cols = cols, .values = values, .type = type};
  return make(operand, handle, stream);
}

static void *make_matrix(const char *what, struct mgpu_sparse operand, void *handle, void *stream) {
  if (mgpu_pending())
    return NULL;
  int64_t rows, cols, most;
  bool overflow = __builtin_mul_overflow(operand.rows, operand.block_rows, &rows) ||
                  __builtin_mul_overflow(operand.cols, operand.block_cols, &cols) ||
                  __builtin_mul_overflow(operand.block_rows, operand.block_cols, &most) ||
                  __builtin_mul_overflow(most, operand.stored, &most) || most > INT64_MAX / 32;
  if (overflow || operand.block_rows < 1 || operand.block_cols < 1 || operand.stored < 0) {
    mgpu_fail(MGPU_ERROR_INVALID,
              "%s cannot have the size %lld x %lld with %lld entries, in blocks of %lld x %lld.", what,
              (long long)operand.rows, (long long)operand.cols, (long long)operand.stored,
              (long long)operand.block_rows, (long long)operand.block_cols);
    return NULL;
  }
  operand.kind = MGPU_SPARSE_MATRIX;
  operand.rows = rows;
  operand.cols = cols;
  if (mgpu_sparse_check_shape(what, rows, cols) || mgpu_sparse_check_type(what, operand.type) ||
      mgpu_sparse_check_index_type(what, operand.index_type) ||
      mgpu_sparse_check_index_type(what, operand.position_type))
    return NULL;
  return make(operand, handle, stream);
}

/* What a backend needs is made when it is used, and kept. */
void mgpuCreateSparseEnv(void) {}
void mgpuCreateSparseLtEnv(void) {}

void mgpuDestroySparseEnv(void) {
  for (int backend = 0; backend < MGPU_BACKENDS; ++backend)
    if (mgpu_backends[backend]->sparse->trim)
      mgpu_backends[backend]->sparse->trim();
}

void mgpuDestroySparseLtEnv(void) { mgpuDestroySparseEnv(); }

void *mgpuCreateDnVec(intptr_t size, void *values, int32_t dtp, void *stream) {
  return make_dense(MGPU_DENSE_VECTOR, size, 1, values, dtp, NULL, stream);
}

void *mgpuCreateDnMat(intptr_t rows, intptr_t cols, void *values, int32_t dtp, void *stream) {
  return make_dense(MGPU_DENSE_MATRIX, rows, cols, values, dtp, NULL, stream);
}

void mgpuDestroyDnVec(void *v, void *stream) {
  (void)stream;
  destroy(v, is_dense, "dense vector or matrix");
}

void mgpuDestroyDnMat(void *m, void *stream) { mgpuDestroyDnVec(m, stream); }

void *mgpuCreateCoo(intptr_t rows, intptr_t cols, intptr_t nnz, void *rowIdxs, void *colIdxs, void *values,
                    int32_t itp, int32_t dtp, void *stream) {
  struct mgpu_sparse operand = {
      .format = MGPU_COO, .rows = rows, .cols = cols, .stored = nnz, .block_rows = 1, .block_cols = 1};
  operand.position_type = operand.index_type = itp;
  operand.type = dtp;
  operand.positions = rowIdxs;
  operand.indices = colIdxs;
  operand.values = values;
  return make_matrix("A COO matrix", operand, NULL, stream);
}

void *mgpuCreateCooAoS(intptr_t rows, intptr_t cols, intptr_t nnz, void *idxs, void *values, int32_t itp,
                       int32_t dtp, void *stream) {
  struct mgpu_sparse operand = {
      .format = MGPU_COO_AOS, .rows = rows, .cols = cols, .stored = nnz, .block_rows = 1, .block_cols = 1};
  operand.position_type = operand.index_type = itp;
  operand.type = dtp;
  operand.indices = idxs;
  operand.values = values;
  return make_matrix("A COO matrix", operand, NULL, stream);
}

static void *make_compressed(const char *what, enum mgpu_sparse_format format, const intptr_t sizes[5],
                             void *positions, void *indices, void *values, const int32_t types[3],
                             void *stream) {
  struct mgpu_sparse operand = {.format = format,
                                .rows = sizes[0],
                                .cols = sizes[1],
                                .stored = sizes[2],
                                .block_rows = sizes[3],
                                .block_cols = sizes[4],
                                .positions = positions,
                                .indices = indices,
                                .values = values,
                                .position_type = types[0],
                                .index_type = types[1],
                                .type = types[2]};
  return make_matrix(what, operand, NULL, stream);
}

void *mgpuCreateCsr(intptr_t rows, intptr_t cols, intptr_t nnz, void *rowPos, void *colIdxs, void *values,
                    int32_t ptp, int32_t itp, int32_t dtp, void *stream) {
  return make_compressed("A CSR matrix", MGPU_CSR, (const intptr_t[]){rows, cols, nnz, 1, 1}, rowPos, colIdxs,
                         values, (const int32_t[]){ptp, itp, dtp}, stream);
}

void *mgpuCreateCsc(intptr_t rows, intptr_t cols, intptr_t nnz, void *colPos, void *rowIdxs, void *values,
                    int32_t ptp, int32_t itp, int32_t dtp, void *stream) {
  return make_compressed("A CSC matrix", MGPU_CSC, (const intptr_t[]){rows, cols, nnz, 1, 1}, colPos, rowIdxs,
                         values, (const int32_t[]){ptp, itp, dtp}, stream);
}

void *mgpuCreateBsr(intptr_t brows, intptr_t bcols, intptr_t bnnz, intptr_t rBsz, intptr_t cBsz, void *rowPos,
                    void *colIdxs, void *values, int32_t ptp, int32_t itp, int32_t dtp, void *stream) {
  return make_compressed("A BSR matrix", MGPU_BSR, (const intptr_t[]){brows, bcols, bnnz, rBsz, cBsz}, rowPos,
                         colIdxs, values, (const int32_t[]){ptp, itp, dtp}, stream);
}

void mgpuDestroySpMat(void *m, void *stream) {
  (void)stream;
  destroy(m, is_matrix, "sparse matrix");
}

void *mgpuSpGEMMCreateDescr(void *stream) {
  return mgpu_pending() ? NULL : make((struct mgpu_sparse){.kind = MGPU_SPGEMM}, NULL, stream);
}

void mgpuSpGEMMDestroyDescr(void *s, void *stream) {
  (void)stream;
  destroy(s, is_spgemm, "SpGEMM");
}

static bool has_buffer(const void *handle, const char *what) {
  if (!handle)
    mgpu_fail(MGPU_ERROR_INVALID, "%s needs a buffer for its handle; it is NULL.", what);
  return handle != NULL;
}

void mgpuCreateCuSparseLtDnMat(void *dh, intptr_t rows, intptr_t cols, void *values, int32_t dtp,
                               void *stream) {
  if (!mgpu_pending() && has_buffer(dh, "A dense matrix"))
    make_dense(MGPU_DENSE_MATRIX, rows, cols, values, dtp, dh, stream);
}

void mgpuDestroyCuSparseLtDnMat(void *dh, void *stream) { mgpuDestroyDnVec(dh, stream); }

void mgpuCusparseLtCreate2To4SpMat(void *sh, intptr_t rows, intptr_t cols, void *values, int32_t dtp,
                                   void *stream) {
  const char *what = "A 2:4 sparse matrix";
  if (mgpu_pending() || !has_buffer(sh, what) || mgpu_sparse_check_dense(what, rows, cols))
    return;
  if (dtp != MGPU_F16 && dtp != MGPU_BF16 && dtp != MGPU_I8)
    mgpu_fail(MGPU_ERROR_UNSUPPORTED, "%s has values of the type %d; it can have f16, bf16 and i8.", what,
              dtp);
  else if (!values && rows && cols)
    mgpu_fail(MGPU_ERROR_INVALID, "%s of %lld x %lld has NULL as its memory.", what, (long long)rows,
              (long long)cols);
  else {
    struct mgpu_sparse operand = {.kind = MGPU_SPARSE_MATRIX,
                                  .format = MGPU_2TO4,
                                  .rows = rows,
                                  .cols = cols,
                                  .stored = rows * cols / 2,
                                  .block_rows = 1,
                                  .block_cols = 1,
                                  .values = values,
                                  .type = dtp};
    make(operand, sh, stream);
  }
}

void mgpuDestroyCuSparseLtSpMat(void *sh, void *stream) { mgpuDestroySpMat(sh, stream); }

void mgpuSpMatGetSize(void *m, void *r, void *c, void *n, void *stream) {
  struct mgpu_place place;
  int64_t *rows = r, *cols = c, *entries = n;
  if (!rows || !cols || !entries) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuSpMatGetSize needs three places for its answer.");
    return;
  }
  *rows = *cols = *entries = 0;
  if (!mgpu_sparse_backend(stream, &place))
    return;
  const struct mgpu_sparse *matrix = mgpu_sparse_find(m);
  if (!matrix || matrix->kind != MGPU_SPARSE_MATRIX) {
    mgpu_fail(MGPU_ERROR_INVALID, "%p is no sparse matrix of this runtime, or has been destroyed already.",
              m);
    return;
  }
  *rows = matrix->rows;
  *cols = matrix->cols;
  *entries =
      matrix->pending >= 0 ? matrix->pending : matrix->stored * matrix->block_rows * matrix->block_cols;
}

void mgpuSetCsrPointers(void *m, void *p, void *c, void *v, void *stream) {
  struct mgpu_place place;
  if (!mgpu_sparse_backend(stream, &place))
    return;
  struct mgpu_sparse *matrix = mgpu_sparse_find(m);
  if (!matrix || matrix->kind != MGPU_SPARSE_MATRIX || matrix->format != MGPU_CSR) {
    mgpu_fail(MGPU_ERROR_INVALID, "%p is no CSR matrix of this runtime, or has been destroyed already.", m);
    return;
  }
  matrix->positions = p;
  matrix->indices = c;
  matrix->values = v;
  if (matrix->pending >= 0)
    matrix->stored = 0; /* the new memory holds nothing until mgpuSpGEMMCopy */
}
