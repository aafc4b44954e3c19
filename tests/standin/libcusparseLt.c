/* libcusparseLt.c: a stand-in for libcusparseLt.so.0: 2:4 matrices over host memory. Sizes, alignment and
 * types are refused as NVIDIA's documents say. */
#include "cuda/cusparselt.h"
#include "sparse_numbers.h"

enum { ROW_ORDER = 2 };

struct matrix {
  int64_t rows, cols;
  int type;
  bool structured;
};

struct product {
  int mode_a, mode_b, compute;
  struct matrix a, b, c;
};

struct plan {
  struct product product;
};

#define OF(type, object) ((struct type *)(void *)(object)->data)
#define CONST_OF(type, object) ((const struct type *)(const void *)(object)->data)
#define LT(name) FAIL_IF_ASKED(#name)

EXPORT int cusparseLtInit(cusparseLtHandle_t *handle) {
  LT(cusparseLtInit);
  handle->data[0] = 77;
  count(HANDLES, 1);
  return SUCCESS;
}

EXPORT int cusparseLtDestroy(const cusparseLtHandle_t *handle) {
  if (handle->data[0] != 77)
    return NOT_INITIALIZED;
  int status = asked("cusparseLtDestroy");
  count(HANDLES, -1);
  return status;
}

EXPORT int cusparseLtGetVersion(const cusparseLtHandle_t *handle, int *version) {
  LT(cusparseLtGetVersion);
  const char *value = getenv("STANDIN_CUSPARSELT");
  *version = value ? atoi(value) : 1000;
  return handle->data[0] == 77 ? SUCCESS : NOT_INITIALIZED;
}

EXPORT const char *cusparseLtGetErrorString(int status) { return status ? "stand-in" : "none"; }

static int describe(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *to, struct matrix matrix,
                    int64_t ld, uint32_t alignment, int order) {
  int64_t unit = matrix.type == R8I ? 16 : matrix.type == R32I ? 4 : 8;
  if (matrix.structured)
    unit *= 2;
  if (handle->data[0] != 77)
    return NOT_INITIALIZED;
  if (order != ROW_ORDER || ld != matrix.cols || alignment != 16)
    return INVALID_VALUE;
  if (matrix.rows % unit || matrix.cols % unit)
    return NOT_SUPPORTED;
  *OF(matrix, to) = matrix;
  count(DESCRIPTORS, 1);
  return SUCCESS;
}

EXPORT int cusparseLtDenseDescriptorInit(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *to,
                                         int64_t rows, int64_t cols, int64_t ld, uint32_t alignment, int type,
                                         int order) {
  LT(cusparseLtDenseDescriptorInit);
  return describe(handle, to, (struct matrix){rows, cols, type, false}, ld, alignment, order);
}

EXPORT int cusparseLtStructuredDescriptorInit(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *to,
                                              int64_t rows, int64_t cols, int64_t ld, uint32_t alignment,
                                              int type, int order, int sparsity) {
  LT(cusparseLtStructuredDescriptorInit);
  if (sparsity != CUSPARSELT_SPARSITY_50_PERCENT)
    return INVALID_VALUE;
  return describe(handle, to, (struct matrix){rows, cols, type, true}, ld, alignment, order);
}

static int destroy(const char *name) {
  int status = asked(name);
  count(DESCRIPTORS, -1);
  return status;
}

EXPORT int cusparseLtMatDescriptorDestroy(const cusparseLtMatDescriptor_t *matrix) {
  (void)matrix;
  return destroy("cusparseLtMatDescriptorDestroy");
}

EXPORT int cusparseLtMatmulDescriptorInit(const cusparseLtHandle_t *handle, cusparseLtMatmulDescriptor_t *to,
                                          int mode_a, int mode_b, const cusparseLtMatDescriptor_t *a,
                                          const cusparseLtMatDescriptor_t *b,
                                          const cusparseLtMatDescriptor_t *c,
                                          const cusparseLtMatDescriptor_t *d, int compute) {
  LT(cusparseLtMatmulDescriptorInit);
  struct product product = {
      mode_a, mode_b, compute, *CONST_OF(matrix, a), *CONST_OF(matrix, b), *CONST_OF(matrix, c)};
  if (handle->data[0] != 77 || c != d || !product.a.structured || product.b.structured ||
      product.c.structured || mode_a > 1 || mode_b > 1)
    return INVALID_VALUE;
  bool whole = product.a.type == R8I;
  bool right = whole ? compute == CUSPARSE_COMPUTE_32I && (product.c.type == R8I || product.c.type == R32I)
                     : compute == CUSPARSE_COMPUTE_32F && product.c.type == product.a.type;
  if (whole && (mode_a != 0 || mode_b != 1)) /* values that are summed lie side by side */
    right = false;
  if (!right || product.a.type != product.b.type)
    return NOT_SUPPORTED;
  *OF(product, to) = product;
  return SUCCESS;
}

EXPORT int cusparseLtMatmulAlgSelectionInit(const cusparseLtHandle_t *handle,
                                            cusparseLtMatmulAlgSelection_t *to,
                                            const cusparseLtMatmulDescriptor_t *product, int way) {
  (void)to;
  (void)product;
  LT(cusparseLtMatmulAlgSelectionInit);
  if (handle->data[0] != 77 || way != CUSPARSELT_MATMUL_ALG_DEFAULT)
    return INVALID_VALUE;
  count(DESCRIPTORS, 1);
  return SUCCESS;
}

EXPORT int cusparseLtMatmulAlgSelectionDestroy(const cusparseLtMatmulAlgSelection_t *way) {
  (void)way;
  return destroy("cusparseLtMatmulAlgSelectionDestroy");
}

EXPORT int cusparseLtMatmulPlanInit(const cusparseLtHandle_t *handle, cusparseLtMatmulPlan_t *to,
                                    const cusparseLtMatmulDescriptor_t *product,
                                    const cusparseLtMatmulAlgSelection_t *way) {
  (void)way;
  LT(cusparseLtMatmulPlanInit);
  if (handle->data[0] != 77)
    return NOT_INITIALIZED;
  OF(plan, to)->product = *CONST_OF(product, product);
  count(DESCRIPTORS, 1);
  return SUCCESS;
}

EXPORT int cusparseLtMatmulPlanDestroy(const cusparseLtMatmulPlan_t *plan) {
  (void)plan;
  return destroy("cusparseLtMatmulPlanDestroy");
}

EXPORT int cusparseLtMatmulGetWorkspace(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
                                        size_t *size) {
  (void)plan;
  LT(cusparseLtMatmulGetWorkspace);
  *size = 0;
  return handle->data[0] == 77 ? SUCCESS : NOT_INITIALIZED;
}

/* As the descriptors say. */
static bool aligned(const void *memory) { return (uintptr_t)memory % 16 == 0; }

/* Visits the groups of four values: the address of the k-th is group[k * step]. */
struct groups {
  int64_t count, per_line, line_step, step;
};

static struct groups groups_of(const struct product *p) {
  if (p->mode_a == 0)
    return (struct groups){p->a.rows * p->a.cols / 4, p->a.cols / 4, p->a.cols, 1};
  return (struct groups){p->a.rows * p->a.cols / 4, p->a.rows / 4, 1, p->a.cols};
}

static int64_t place(const struct groups *g, int64_t group, int k) {
  return group / g->per_line * g->line_step + (group % g->per_line * 4 + k) * g->step;
}

EXPORT int cusparseLtSpMMAPrune(const cusparseLtHandle_t *handle, const cusparseLtMatmulDescriptor_t *product,
                                const void *from, void *to, int way, cudaStream_t stream) {
  const struct product *p = CONST_OF(product, product);
  const struct groups g = groups_of(p);
  LT(cusparseLtSpMMAPrune);
  if (handle->data[0] != 77 || way != CUSPARSELT_PRUNE_SPMMA_STRIP || !stream || from != to || !aligned(to))
    return INVALID_VALUE;
  for (int64_t i = 0; i < g.count; ++i)
    for (int removed = 0; removed < 2; ++removed) {
      int least = -1;
      double size = 0;
      for (int k = 3; k >= 0; --k) { /* of equal ones the last goes */
        double value = load(p->a.type, to, place(&g, i, k)).re;
        value = value < 0 ? -value : value;
        if (value != 0 && (least < 0 || value < size)) {
          least = k;
          size = value;
        }
      }
      int others = 0;
      for (int k = 0; k < 4; ++k)
        others += load(p->a.type, to, place(&g, i, k)).re != 0;
      if (others > 2)
        store(p->a.type, to, place(&g, i, least), (struct number){0, 0});
    }
  note("cusparseLtSpMMAPrune S%d", number_of(stream));
  return SUCCESS;
}

static int most_in_group(const struct product *p, const void *values) {
  const struct groups g = groups_of(p);
  int most = 0;
  for (int64_t i = 0; i < g.count; ++i) {
    int in_group = 0;
    for (int k = 0; k < 4; ++k)
      in_group += load(p->a.type, values, place(&g, i, k)).re != 0;
    most = in_group > most ? in_group : most;
  }
  return most;
}

EXPORT int cusparseLtSpMMAPruneCheck(const cusparseLtHandle_t *handle,
                                     const cusparseLtMatmulDescriptor_t *product, const void *values,
                                     int *invalid, cudaStream_t stream) {
  LT(cusparseLtSpMMAPruneCheck);
  if (handle->data[0] != 77 || !stream)
    return INVALID_VALUE;
  if (getenv("STANDIN_INVALID") || most_in_group(CONST_OF(product, product), values) > 2)
    *invalid = 1; /* as the real one, which writes nothing else */
  return SUCCESS;
}

/* In short: per group its two values, then two bytes that say where they were. */
static size_t group_size(int type) { return 2 * size_of(type) + 2; }

EXPORT int cusparseLtSpMMACompressedSize(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
                                         size_t *size, size_t *workspace) {
  const struct product *p = &CONST_OF(plan, plan)->product;
  LT(cusparseLtSpMMACompressedSize);
  *size = (size_t)groups_of(p).count * group_size(p->a.type);
  *workspace = 32;
  return handle->data[0] == 77 ? SUCCESS : NOT_INITIALIZED;
}

EXPORT int cusparseLtSpMMACompress(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
                                   const void *values, void *to, void *workspace, cudaStream_t stream) {
  const struct product *p = &CONST_OF(plan, plan)->product;
  const struct groups g = groups_of(p);
  size_t width = size_of(p->a.type);
  LT(cusparseLtSpMMACompress);
  if (handle->data[0] != 77 || !to || !workspace || !stream || !aligned(values))
    return INVALID_VALUE;
  memset(workspace, 0xDD, 32);
  for (int64_t i = 0; i < g.count; ++i) {
    char *group = (char *)to + (size_t)i * group_size(p->a.type), *places = group + 2 * width;
    memset(group, 0, group_size(p->a.type));
    for (int k = 0, kept = 0; k < 4 && kept < 2; ++k)
      if (load(p->a.type, values, place(&g, i, k)).re != 0) {
        memcpy(group + (size_t)kept * width, (const char *)values + (size_t)place(&g, i, k) * width, width);
        places[kept++] = (char)k;
      }
  }
  return SUCCESS;
}

static struct full full_short(const struct product *p, const void *from) {
  const struct groups g = groups_of(p);
  struct full full = full_make(p->a.rows, p->a.cols);
  size_t width = size_of(p->a.type);
  for (int64_t i = 0; i < g.count; ++i) {
    const char *group = (const char *)from + (size_t)i * group_size(p->a.type), *places = group + 2 * width;
    for (int kept = 0; kept < 2; ++kept)
      full.at[place(&g, i, places[kept])].re += load(p->a.type, group, kept).re;
  }
  full_turn(&full, p->mode_a);
  return full;
}

static struct full full_dense(const struct matrix *m, int mode, const void *values) {
  struct full full = full_make(m->rows, m->cols);
  for (int64_t i = 0; i < m->rows * m->cols; ++i)
    full.at[i] = load(m->type, values, i);
  full_turn(&full, mode);
  return full;
}

EXPORT int cusparseLtMatmul(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
                            const void *alpha, const void *a_short, const void *b_values, const void *beta,
                            const void *c_values, void *d_values, void *workspace, cudaStream_t *streams,
                            int32_t count_) {
  const struct product *p = &CONST_OF(plan, plan)->product;
  (void)workspace;
  LT(cusparseLtMatmul);
  if (handle->data[0] != 77 || count_ != 1 || !streams || !*streams || c_values != d_values ||
      !aligned(b_values) || !aligned(c_values))
    return INVALID_VALUE;
  struct full a = full_short(p, a_short), b = full_dense(&p->b, p->mode_b, b_values);
  int status = a.cols == b.rows && p->c.rows == a.rows && p->c.cols == b.cols ? SUCCESS : INVALID_VALUE;
  for (int64_t i = 0; !status && i < p->c.rows * p->c.cols; ++i)
    store(p->c.type, d_values, i,
          combine(R32F, alpha, full_dot(&a, i / p->c.cols, &b, i % p->c.cols), beta,
                  load(p->c.type, c_values, i)));
  free(a.at);
  free(b.at);
  note("cusparseLtMatmul S%d", number_of(*streams));
  return status;
}
