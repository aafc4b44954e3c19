/* sparse_library.h: a stand-in for a vendor's sparse library over host memory. Included by libcusparse.c and
 * libhipsparse.c, with
 *   PREFIX       of the functions' names
 *   ROW_ORDER    what it calls row by row
 *   VERSION      that it tells
 *   CURRENT()    the current device, or -1
 *   SAMPLES(f)   whether SDDMM computes into the format f
 *   OLD          a version without BSR, without texts of statuses, which ends the process at some types
 *
 * It refuses what the vendors' documents refuse: products whose workspace was not asked for with the same
 * arguments, another device than the handle's, a handle without a stream, phases of an SpGEMM out of order,
 * types of indices and values that are mixed, conjugated real numbers, BSR transposed. */
#include "sparse_numbers.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)
#define NAME(name) PASTE(PREFIX, name)
#define TEXT(name) QUOTE(PREFIX) #name

enum format { COO, CSR, CSC, BSR, VECTOR, MATRIX };
enum { INDEX_16U = 1, INDEX_32I = 2, INDEX_64I = 3 };
enum { ASKED_SIZE = 1 };
enum { CONJUGATED = 2 };

struct handle {
  int device;
  void *stream;
  bool has_stream;
};

struct descriptor {
  enum format format;
  int64_t rows, cols, stored, height, width; /* of a block */
  void *first, *second, *values;             /* rows, columns, positions as the format has them */
  int first_type, second_type, type;
  const struct descriptor *sized_with[2]; /* the other operands that a workspace was asked for with */
  int sized_as;                           /* the product and its modes, as one number */
  size_t size;
};

struct spgemm {
  int phase;
  size_t sizes[2];
  void *buffers[2];
  struct full result;
  bool *there;
};

/* The stand-in drivers' streams begin with a number and their device. */
static int device_of(const void *stream) { return stream ? ((const int *)stream)[1] : -1; }

static int64_t index_at(int type, const void *indices, int64_t at) {
  return type == INDEX_16U   ? ((const uint16_t *)indices)[at]
         : type == INDEX_32I ? ((const int32_t *)indices)[at]
                             : ((const int64_t *)indices)[at];
}

static void index_put(int type, void *indices, int64_t at, int64_t index) {
  if (type == INDEX_32I)
    ((int32_t *)indices)[at] = (int32_t)index;
  else
    ((int64_t *)indices)[at] = index;
}

EXPORT int NAME(Create)(void **out) {
  FAIL_IF_ASKED(TEXT(Create));
  if (CURRENT() < 0)
    return NOT_INITIALIZED;
  struct handle *handle = calloc(1, sizeof *handle);
  handle->device = CURRENT();
  count(HANDLES, 1);
  *out = handle;
  return SUCCESS;
}

EXPORT int NAME(Destroy)(void *pointer) {
  struct handle *handle = pointer;
  if (handle->device != CURRENT())
    return NOT_INITIALIZED;
  int status = asked(TEXT(Destroy)); /* the handle is gone all the same */
  count(HANDLES, -1);
  free(handle);
  return status;
}

EXPORT int NAME(GetVersion)(void *handle, int *out) {
  (void)handle;
  FAIL_IF_ASKED(TEXT(GetVersion));
  *out = VERSION;
  return SUCCESS;
}

EXPORT int NAME(SetStream)(void *pointer, void *stream) {
  struct handle *handle = pointer;
  FAIL_IF_ASKED(TEXT(SetStream));
  if (handle->device != CURRENT() || device_of(stream) != handle->device)
    return INVALID_VALUE;
  handle->stream = stream;
  handle->has_stream = true;
  return SUCCESS;
}

#ifdef OLD
/* As the real one does: an exception leaves it. */
static int check_type(int type) {
  if (type != R32F && type != R64F && type != C32F && type != C64F)
    abort();
  return SUCCESS;
}
#else
static int check_type(int type) {
  return type < 0 || type > C16BF || (type > C16F && type < R32I) ? INVALID_VALUE : SUCCESS;
}

EXPORT const char *NAME(GetErrorName)(int status) {
  (void)status;
  return "a name that nobody asks for";
}

EXPORT const char *NAME(GetErrorString)(int status) {
  return status == NOT_SUPPORTED ? "operation not supported" : "stand-in";
}
#endif

static int describe(void **out, struct descriptor made) {
  if (made.rows < 0 || made.cols < 0 || made.stored < 0 || check_type(made.type))
    return INVALID_VALUE;
  if (made.stored && (!made.values || !made.second))
    return INVALID_VALUE;
  struct descriptor *descriptor = malloc(sizeof *descriptor);
  *descriptor = made;
  count(DESCRIPTORS, 1);
  *out = descriptor;
  return SUCCESS;
}

static int destroy(const void *descriptor, const char *name) {
  int status = asked(name);
  count(DESCRIPTORS, -1);
  free((void *)(uintptr_t)descriptor);
  return status;
}

EXPORT int NAME(CreateDnVec)(void **out, int64_t size, void *values, int type) {
  FAIL_IF_ASKED(TEXT(CreateDnVec));
  return describe(
      out, (struct descriptor){.format = VECTOR, .rows = size, .cols = 1, .values = values, .type = type});
}

EXPORT int NAME(CreateDnMat)(void **out, int64_t rows, int64_t cols, int64_t ld, void *values, int type,
                             int order) {
  FAIL_IF_ASKED(TEXT(CreateDnMat));
  if (order != ROW_ORDER || ld != cols)
    return INVALID_VALUE;
  return describe(
      out, (struct descriptor){.format = MATRIX, .rows = rows, .cols = cols, .values = values, .type = type});
}

EXPORT int NAME(DestroyDnVec)(const void *descriptor) { return destroy(descriptor, TEXT(DestroyDnVec)); }
EXPORT int NAME(DestroyDnMat)(const void *descriptor) { return destroy(descriptor, TEXT(DestroyDnMat)); }
EXPORT int NAME(DestroySpMat)(const void *descriptor) { return destroy(descriptor, TEXT(DestroySpMat)); }

EXPORT int NAME(CreateCoo)(void **out, int64_t rows, int64_t cols, int64_t nnz, void *row, void *col,
                           void *values, int index, int base, int type) {
  FAIL_IF_ASKED(TEXT(CreateCoo));
  if (base != 0)
    return INVALID_VALUE;
  return describe(
      out, (struct descriptor){COO, rows, cols, nnz, 1, 1, row, col, values, index, index, type, {0}, 0, 0});
}

EXPORT int NAME(CreateCsr)(void **out, int64_t rows, int64_t cols, int64_t nnz, void *positions, void *col,
                           void *values, int position, int index, int base, int type) {
  FAIL_IF_ASKED(TEXT(CreateCsr));
  if (base != 0)
    return INVALID_VALUE;
  return describe(out,
                  (struct descriptor){
                      CSR, rows, cols, nnz, 1, 1, positions, col, values, position, index, type, {0}, 0, 0});
}

EXPORT int NAME(CreateCsc)(void **out, int64_t rows, int64_t cols, int64_t nnz, void *positions, void *row,
                           void *values, int position, int index, int base, int type) {
  FAIL_IF_ASKED(TEXT(CreateCsc));
  if (base != 0)
    return INVALID_VALUE;
  return describe(out,
                  (struct descriptor){
                      CSC, rows, cols, nnz, 1, 1, positions, row, values, position, index, type, {0}, 0, 0});
}

#ifndef OLD
EXPORT int NAME(CreateBsr)(void **out, int64_t brows, int64_t bcols, int64_t bnnz, int64_t height,
                           int64_t width, void *positions, void *col, void *values, int position, int index,
                           int base, int type, int order) {
  FAIL_IF_ASKED(TEXT(CreateBsr));
  if (base != 0 || order != ROW_ORDER)
    return INVALID_VALUE;
  return describe(out, (struct descriptor){BSR,
                                           brows * height,
                                           bcols * width,
                                           bnnz,
                                           height,
                                           width,
                                           positions,
                                           col,
                                           values,
                                           position,
                                           index,
                                           type,
                                           {0},
                                           0,
                                           0});
}
#endif

EXPORT int NAME(SpMatGetSize)(const void *pointer, int64_t *rows, int64_t *cols, int64_t *nnz) {
  const struct descriptor *m = pointer;
  FAIL_IF_ASKED(TEXT(SpMatGetSize));
  *rows = m->rows;
  *cols = m->cols;
  *nnz = m->stored;
  return SUCCESS;
}

EXPORT int NAME(CsrSetPointers)(void *pointer, void *positions, void *col, void *values) {
  struct descriptor *m = pointer;
  FAIL_IF_ASKED(TEXT(CsrSetPointers));
  if (m->format != CSR)
    return INVALID_VALUE;
  m->first = positions;
  m->second = col;
  m->values = values;
  return SUCCESS;
}

/* Calls visit for every entry that is stored. */
static void each_entry(const struct descriptor *m, void *data,
                       void (*visit)(void *data, int64_t row, int64_t col, int64_t slot)) {
  if (m->format == COO) {
    for (int64_t i = 0; i < m->stored; ++i)
      visit(data, index_at(m->first_type, m->first, i), index_at(m->second_type, m->second, i), i);
    return;
  }
  int64_t lines = m->format == CSC ? m->cols : m->rows / m->height;
  for (int64_t line = 0; line < lines && m->stored; ++line) {
    int64_t end = index_at(m->first_type, m->first, line + 1);
    for (int64_t k = index_at(m->first_type, m->first, line); k < end; ++k) {
      int64_t other = index_at(m->second_type, m->second, k);
      if (m->format == CSC)
        visit(data, other, line, k);
      for (int64_t i = 0; m->format != CSC && i < m->height * m->width; ++i)
        visit(data, line * m->height + i / m->width, other * m->width + i % m->width,
              k * m->height * m->width + i);
    }
  }
}

struct reader {
  const struct descriptor *m;
  struct full *to;
  bool *there;
};

static void read_entry(void *data, int64_t row, int64_t col, int64_t slot) {
  struct reader *reader = data;
  int64_t at = row * reader->to->cols + col;
  struct number value = load(reader->m->type, reader->m->values, slot);
  reader->to->at[at].re += value.re;
  reader->to->at[at].im += value.im;
  if (reader->there)
    reader->there[at] = true;
}

static struct full full_of(const struct descriptor *m, int mode, bool *there) {
  struct full full = full_make(m->rows, m->cols);
  if (m->format == VECTOR || m->format == MATRIX) {
    for (int64_t i = 0; i < m->rows * m->cols; ++i)
      full.at[i] = load(m->type, m->values, i);
  } else {
    struct reader reader = {m, &full, there};
    each_entry(m, &reader, read_entry);
  }
  full_turn(&full, mode);
  return full;
}

static bool is_complex(int type) { return type == C32F || type == C64F || type == C16F || type == C16BF; }

static bool is_sparse(const struct descriptor *m) { return m->format != VECTOR && m->format != MATRIX; }

/* What every operation asks of its handle and its operands. */
static int check(const struct handle *handle, const struct descriptor *const operands[3], int compute) {
  if (handle->device != CURRENT())
    return NOT_INITIALIZED;
  if (!handle->has_stream)
    return INVALID_VALUE;
  if (check_type(compute) || compute == R16F || compute == R16BF || compute == C16F || compute == C16BF)
    return NOT_SUPPORTED;
  for (int i = 0; i < 3; ++i) {
    const struct descriptor *m = operands[i];
    if (m->type == R32I && compute != R32I)
      return NOT_SUPPORTED;
    if (m->type == R32I && i < 2)
      return NOT_SUPPORTED; /* whole numbers are multiplied as 8 bits alone */
    if (is_sparse(m) && (m->first_type == INDEX_16U || m->second_type == INDEX_16U))
      return NOT_SUPPORTED;
  }
  return SUCCESS;
}

enum product { SPMV = 1, SPMM, SDDMM };

static int signature(enum product product, int mode_a, int mode_b, int compute) {
  return ASKED_SIZE + 2 * ((int)product + 4 * (mode_a + 3 * (mode_b + 3 * compute)));
}

static int ask(enum product product, const char *name, const struct handle *handle, int mode_a, int mode_b,
               const struct descriptor *const of[3], int compute, int way, size_t *size) {
  FAIL_IF_ASKED(name);
  int status = way ? INVALID_VALUE : check(handle, of, compute);
  if (status)
    return status;
  struct descriptor *sparse = (struct descriptor *)(uintptr_t)of[product == SDDMM ? 2 : 0];
  if (product == SDDMM && !SAMPLES(sparse->format))
    return NOT_SUPPORTED;
  if (product == SDDMM && (mode_a == CONJUGATED || mode_b == CONJUGATED))
    return INVALID_VALUE; /* cuSPARSE computes something else, or faults */
  if ((mode_a == CONJUGATED && !is_complex(of[0]->type)) ||
      (mode_b == CONJUGATED && !is_complex(of[1]->type)))
    return INVALID_VALUE;
  if (product == SPMV && sparse->format == BSR && mode_a)
    return NOT_SUPPORTED;
  if (is_complex(compute) && !is_complex(of[1]->type))
    return NOT_SUPPORTED;
  sparse->sized_with[0] = of[1];
  sparse->sized_with[1] = of[product == SDDMM ? 0 : 2];
  sparse->sized_as = signature(product, mode_a, mode_b, compute);
  *size = sparse->size = sparse->format == COO ? 0 : 40;
  return SUCCESS;
}

/* Where a product's entries of a sparse matrix go. */
struct sampler {
  const struct full *a, *b;
  struct descriptor *c;
  int compute;
  const void *alpha, *beta;
};

static void sample(void *data, int64_t row, int64_t col, int64_t slot) {
  struct sampler *s = data;
  store(s->c->type, s->c->values, slot,
        combine(s->compute, s->alpha, full_dot(s->a, row, s->b, col), s->beta,
                load(s->c->type, s->c->values, slot)));
}

static int multiply(enum product product, const char *name, const struct handle *handle, int mode_a,
                    int mode_b, const void *alpha, const void *beta, const struct descriptor *const of[3],
                    int compute, int way, void *workspace) {
  FAIL_IF_ASKED(name);
  const struct descriptor *sparse = of[product == SDDMM ? 2 : 0];
  if (way || sparse->sized_as != signature(product, mode_a, mode_b, compute) ||
      sparse->sized_with[0] != of[1] || sparse->sized_with[1] != of[product == SDDMM ? 0 : 2] ||
      (sparse->size && !workspace))
    return INVALID_VALUE;
  int status = check(handle, of, compute);
  if (status)
    return status;
  if (workspace)
    memset(workspace, 0xEE, sparse->size); /* it is the library's to write to */
  struct descriptor *c = (struct descriptor *)(uintptr_t)of[2];
  struct full a = full_of(of[0], mode_a, NULL), b = full_of(of[1], mode_b, NULL);
  if (a.cols != b.rows || a.rows != c->rows || b.cols != c->cols)
    status = INVALID_VALUE;
  else if (product == SDDMM) {
    struct sampler sampler = {&a, &b, c, compute, alpha, beta};
    each_entry(c, &sampler, sample);
  } else {
    for (int64_t i = 0; i < c->rows * c->cols; ++i)
      store(c->type, c->values, i,
            combine(compute, alpha, full_dot(&a, i / c->cols, &b, i % c->cols), beta,
                    load(c->type, c->values, i)));
  }
  free(a.at);
  free(b.at);
  note("%s S%d", name, number_of(handle->stream));
  return status;
}

EXPORT int NAME(SpMV_bufferSize)(void *handle, int mode, const void *alpha, const void *a, const void *x,
                                 const void *beta, void *y, int compute, int way, size_t *size) {
  const struct descriptor *const of[] = {a, x, y};
  (void)alpha;
  (void)beta;
  return ask(SPMV, TEXT(SpMV_bufferSize), handle, mode, 0, of, compute, way, size);
}

EXPORT int NAME(SpMV)(void *handle, int mode, const void *alpha, const void *a, const void *x,
                      const void *beta, void *y, int compute, int way, void *workspace) {
  const struct descriptor *const of[] = {a, x, y};
  return multiply(SPMV, TEXT(SpMV), handle, mode, 0, alpha, beta, of, compute, way, workspace);
}

EXPORT int NAME(SpMM_bufferSize)(void *handle, int mode_a, int mode_b, const void *alpha, const void *a,
                                 const void *b, const void *beta, void *c, int compute, int way,
                                 size_t *size) {
  const struct descriptor *const of[] = {a, b, c};
  (void)alpha;
  (void)beta;
  return ask(SPMM, TEXT(SpMM_bufferSize), handle, mode_a, mode_b, of, compute, way, size);
}

EXPORT int NAME(SpMM)(void *handle, int mode_a, int mode_b, const void *alpha, const void *a, const void *b,
                      const void *beta, void *c, int compute, int way, void *workspace) {
  const struct descriptor *const of[] = {a, b, c};
  return multiply(SPMM, TEXT(SpMM), handle, mode_a, mode_b, alpha, beta, of, compute, way, workspace);
}

EXPORT int NAME(SDDMM_bufferSize)(void *handle, int mode_a, int mode_b, const void *alpha, const void *a,
                                  const void *b, const void *beta, void *c, int compute, int way,
                                  size_t *size) {
  const struct descriptor *const of[] = {a, b, c};
  (void)alpha;
  (void)beta;
  return ask(SDDMM, TEXT(SDDMM_bufferSize), handle, mode_a, mode_b, of, compute, way, size);
}

EXPORT int NAME(SDDMM)(void *handle, int mode_a, int mode_b, const void *alpha, const void *a, const void *b,
                       const void *beta, void *c, int compute, int way, void *workspace) {
  const struct descriptor *const of[] = {a, b, c};
  return multiply(SDDMM, TEXT(SDDMM), handle, mode_a, mode_b, alpha, beta, of, compute, way, workspace);
}

#include "sparse_spgemm.h"
