/* gpu_descriptors.c: a vendor's descriptors of sparse and dense operands, made for one operation: they
 * hold no memory of the device, and so any thread can compute with an operand that another one computes with.
 */
#include "core/error.h"
#include "sparse/gpu.h"

/* What the driver's allocations are aligned to. */
enum { ALIGNMENT = 256 };

static bool has_pairs(const struct mgpu_sparse *operand) {
  return operand->kind == MGPU_SPARSE_MATRIX && operand->format == MGPU_COO_AOS;
}

static size_t index_size(int type) { return type == MGPU_INDEX_U16 ? 2 : type == MGPU_INDEX_I32 ? 4 : 8; }

/* Bytes of one of the two arrays, up to the next one. */
static size_t half_size(const struct mgpu_sparse *operand) {
  size_t bytes = (size_t)operand->stored * index_size(operand->index_type);
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t mgpu_sparse_split_size(const struct mgpu_sparse_call *call) {
  const struct mgpu_sparse *const operands[] = {call->a, call->b, call->c};
  size_t size = 0;
  for (int i = 0; i < 3; ++i)
    size += has_pairs(operands[i]) ? 2 * half_size(operands[i]) : 0;
  return size;
}

/* Libraries know no pairs of indices: copies them into two arrays, on the stream. */
static int split_pairs(const struct mgpu_place *place, const struct mgpu_sparse *operand, char *to) {
  const struct mgpu_backend *backend = mgpu_backends[place->backend];
  size_t width = index_size(operand->index_type), count = (size_t)operand->stored;
  const char *from = operand->indices;
  if (count == 0)
    return 0;
  int failure =
      backend->memcpy2d(place->device, to, width, from, (ptrdiff_t)(2 * width), width, count, place->driver);
  return failure ? failure
                 : backend->memcpy2d(place->device, to + half_size(operand), width, from + width,
                                     (ptrdiff_t)(2 * width), width, count, place->driver);
}

/* `rows` and `cols`: the arrays of a COO matrix. */
static int describe_coo(const struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse *m, void *rows,
                        void *cols, void **out) {
  if (m->position_type != m->index_type)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "A COO matrix has row and column indices of one type.");
  return MGPU_SPARSE_CALL(vendor, CreateCoo,
                          (out, m->rows, m->cols, m->stored, rows, cols, m->values, m->index_type,
                           MGPU_SPARSE_INDEX_BASE_ZERO, m->type));
}

/* Dense matrices and blocks are stored row by row, and the library must be told so. */
static int check_order(const struct mgpu_sparse_vendor *vendor) {
  enum { MAJOR = 100000, MINOR = 100 };
  if (vendor->row_order != MGPU_SPARSE_ORDER_UNKNOWN)
    return 0;
  return mgpu_fail(
      MGPU_ERROR_UNSUPPORTED,
      "Dense matrices and BSR do not work with %s %d.%d.%d: its number for layouts by rows is not known, "
      "as versions between 2.3.2 (ROCm 5.3) and 3.0 (ROCm 6) changed it. Install ROCm 6 or later.",
      vendor->library.product, vendor->version / MAJOR, vendor->version / MINOR % 1000,
      vendor->version % MINOR);
}

static int describe_bsr(const struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse *m, void **out) {
  if (!vendor->functions.CreateBsr)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "This version of %s has no BSR matrices (no %sCreateBsr).",
                     vendor->library.product, vendor->prefix);
  int failure = check_order(vendor);
  if (failure)
    return failure;
  return MGPU_SPARSE_CALL(vendor, CreateBsr,
                          (out, m->rows / m->block_rows, m->cols / m->block_cols, m->stored, m->block_rows,
                           m->block_cols, m->positions, m->indices, m->values, m->position_type,
                           m->index_type, MGPU_SPARSE_INDEX_BASE_ZERO, m->type, vendor->row_order));
}

static int describe_sparse(const struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse *m, char *split,
                           void **out) {
  switch (m->format) {
  case MGPU_COO:
    return describe_coo(vendor, m, m->positions, m->indices, out);
  case MGPU_COO_AOS: /* without room only sizes are asked for, which do not depend on the indices */
    return describe_coo(vendor, m, split ? split : m->indices, split ? split + half_size(m) : m->indices,
                        out);
  case MGPU_CSR:
    return MGPU_SPARSE_CALL(vendor, CreateCsr,
                            (out, m->rows, m->cols, m->stored, m->positions, m->indices, m->values,
                             m->position_type, m->index_type, MGPU_SPARSE_INDEX_BASE_ZERO, m->type));
  case MGPU_CSC:
    return MGPU_SPARSE_CALL(vendor, CreateCsc,
                            (out, m->rows, m->cols, m->stored, m->positions, m->indices, m->values,
                             m->position_type, m->index_type, MGPU_SPARSE_INDEX_BASE_ZERO, m->type));
  case MGPU_BSR:
    return describe_bsr(vendor, m, out);
  case MGPU_2TO4:
    break;
  }
  return mgpu_fail(MGPU_ERROR_INVALID, "A 2:4 sparse matrix is no operand of %s.", vendor->library.product);
}

static int describe(const struct mgpu_sparse_vendor *vendor, const struct mgpu_sparse *operand, char *split,
                    void **out) {
  int failure = vendor->check_type ? vendor->check_type(vendor->version, operand->type) : 0;
  if (failure)
    return failure;
  if (operand->kind == MGPU_SPARSE_MATRIX)
    return describe_sparse(vendor, operand, split, out);
  if (operand->kind == MGPU_DENSE_VECTOR)
    return MGPU_SPARSE_CALL(vendor, CreateDnVec, (out, operand->rows, operand->values, operand->type));
  failure = check_order(vendor);
  if (failure)
    return failure;
  return MGPU_SPARSE_CALL(
      vendor, CreateDnMat,
      (out, operand->rows, operand->cols, operand->cols, operand->values, operand->type, vendor->row_order));
}

int mgpu_sparse_describe(struct mgpu_sparse_use *use, const struct mgpu_sparse_call *call, void *split,
                         struct mgpu_sparse_descriptors *descriptors) {
  const struct mgpu_sparse *const operands[] = {call->a, call->b, call->c};
  char *room = split;
  int failure = 0;
  *descriptors = (struct mgpu_sparse_descriptors){.call = call};
  for (int i = 0; i < 3 && !failure; ++i) {
    if (room && has_pairs(operands[i]))
      failure = split_pairs(&call->place, operands[i], room);
    if (!failure)
      failure = describe(use->vendor, operands[i], room, &descriptors->of[i]);
    if (room && has_pairs(operands[i]))
      room += 2 * half_size(operands[i]);
  }
  if (failure)
    mgpu_sparse_undescribe(use->vendor, descriptors);
  return failure;
}

void mgpu_sparse_undescribe(struct mgpu_sparse_vendor *vendor, struct mgpu_sparse_descriptors *descriptors) {
  const struct mgpu_sparse_call *call = descriptors->call;
  const struct mgpu_sparse *const operands[] = {call->a, call->b, call->c};
  for (int i = 0; i < 3; ++i) {
    void *descriptor = descriptors->of[i];
    descriptors->of[i] = NULL;
    if (!descriptor)
      continue;
    if (operands[i]->kind == MGPU_SPARSE_MATRIX)
      MGPU_SPARSE_CALL(vendor, DestroySpMat, (descriptor));
    else if (operands[i]->kind == MGPU_DENSE_VECTOR)
      MGPU_SPARSE_CALL(vendor, DestroyDnVec, (descriptor));
    else
      MGPU_SPARSE_CALL(vendor, DestroyDnMat, (descriptor));
  }
}
