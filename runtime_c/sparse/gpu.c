/* gpu.c: SpMV, SpMM and SDDMM on a GPU: C = op(A) op(B) + C by the vendor's library. */
#include "sparse/gpu.h"

#include "core/error.h"

int mgpu_sparse_compute_type(int compute) {
  switch ((enum mgpu_type)compute) {
  case MGPU_F16:
  case MGPU_BF16:
    return MGPU_F32;
  case MGPU_C16:
  case MGPU_CBF16:
    return MGPU_C32;
  case MGPU_F32:
  case MGPU_F64:
  case MGPU_I8:
  case MGPU_C32:
  case MGPU_C64:
  case MGPU_I32:
    break;
  }
  return compute;
}

int mgpu_sparse_mode(int mode, const struct mgpu_sparse *operand) {
  return mode == MGPU_CONJUGATE_TRANSPOSE && !mgpu_sparse_is_complex(operand->type) ? MGPU_TRANSPOSE : mode;
}

const void *mgpu_sparse_one(int compute_type) {
  static const float singles[2] = {1, 0};
  static const double doubles[2] = {1, 0};
  static const int32_t integer = 1;
  return compute_type == MGPU_I32                               ? (const void *)&integer
         : compute_type == MGPU_F64 || compute_type == MGPU_C64 ? (const void *)doubles
                                                                : (const void *)singles;
}

const void *mgpu_sparse_zero(void) {
  static const double zero[2] = {0, 0}; /* in every type */
  return zero;
}

/* One product on descriptors, or the size of its workspace. */
struct work {
  struct mgpu_sparse_use use;
  const struct mgpu_sparse_call *asked;
  struct mgpu_sparse_call call; /* as the library has it */
  struct mgpu_sparse turned;    /* the result that it has, where that is not the one asked for */
  struct mgpu_sparse_descriptors operands;
  enum mgpu_product product;
  int type;
};

/* Every library samples into CSR, not every one into CSC, whose arrays are the CSR of the transpose:
 * op(B)^T op(A)^T. */
static void turn(struct work *w) {
  struct mgpu_sparse_call *call = &w->call;
  w->turned = *w->asked->c;
  w->turned.format = MGPU_CSR;
  w->turned.rows = w->asked->c->cols;
  w->turned.cols = w->asked->c->rows;
  call->a = w->asked->b;
  call->b = w->asked->a;
  call->c = &w->turned;
  int before = call->mode_a;
  call->mode_a = call->mode_b == MGPU_AS_IS ? MGPU_TRANSPOSE : MGPU_AS_IS;
  call->mode_b = before == MGPU_AS_IS ? MGPU_TRANSPOSE : MGPU_AS_IS;
}

/* Writes w->call. */
static int adapt(struct work *w) {
  struct mgpu_sparse_call *call = &w->call;
  *call = *w->asked;
  call->mode_a = mgpu_sparse_mode(call->mode_a, call->a);
  call->mode_b = mgpu_sparse_mode(call->mode_b, call->b);
  if (w->product != MGPU_SDDMM)
    return 0;
  /* The libraries' documents leave it out. cuSPARSE 12.6 takes it, and computes something else or faults. */
  if (call->mode_a == MGPU_CONJUGATE_TRANSPOSE || call->mode_b == MGPU_CONJUGATE_TRANSPOSE)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "%s has no SDDMM with a conjugated operand: conjugate its values in memory, and use it "
                     "transposed.",
                     w->use.vendor->library.product);
  if (call->c->format == MGPU_CSC)
    turn(w);
  return 0;
}

/* The library's arguments but for the last; beta is 1 as alpha is. */
#define ARGUMENTS(...) handle, __VA_ARGS__, one, of[0], of[1], one, of[2], w->type, DEFAULT_WAY

/* Asks for the size, or, where that is NULL, multiplies. */
static int run(struct work *w, size_t *size, void *workspace) {
  enum { DEFAULT_WAY = 0 }; /* of all products, in all versions */
  const struct mgpu_sparse_vendor *vendor = w->use.vendor;
  const struct mgpu_sparse_call *call = w->asked;
  void *handle = w->use.handle->handle, *const *of = w->operands.of;
  const void *one = mgpu_sparse_one(w->type);
  int ma = w->call.mode_a, mb = w->call.mode_b;
  switch (w->product) {
  case MGPU_SPMV:
    return size ? MGPU_SPARSE_CALL_ON(vendor, call, SpMV_bufferSize, (ARGUMENTS(ma), size))
                : MGPU_SPARSE_CALL_ON(vendor, call, SpMV, (ARGUMENTS(ma), workspace));
  case MGPU_SPMM:
    return size ? MGPU_SPARSE_CALL_ON(vendor, call, SpMM_bufferSize, (ARGUMENTS(ma, mb), size))
                : MGPU_SPARSE_CALL_ON(vendor, call, SpMM, (ARGUMENTS(ma, mb), workspace));
  case MGPU_SDDMM:
    break;
  }
  return size ? MGPU_SPARSE_CALL_ON(vendor, call, SDDMM_bufferSize, (ARGUMENTS(ma, mb), size))
              : MGPU_SPARSE_CALL_ON(vendor, call, SDDMM, (ARGUMENTS(ma, mb), workspace));
}

/* `split`: see mgpu_sparse_describe. */
static int begin(struct work *w, enum mgpu_product product, const struct mgpu_sparse_call *call,
                 void *split) {
  struct mgpu_sparse_vendor *vendor = mgpu_sparse_vendor_of(call->place.backend);
  w->product = product;
  w->asked = call;
  w->type = mgpu_sparse_compute_type(call->compute);
  int failure = mgpu_sparse_begin(vendor, call, &w->use);
  if (failure)
    return failure;
  if (vendor->check_type)
    failure = vendor->check_type(vendor->version, w->type);
  if (!failure)
    failure = adapt(w);
  if (!failure)
    failure = mgpu_sparse_describe(&w->use, &w->call, split, &w->operands);
  if (failure)
    mgpu_sparse_end(&w->use, NULL);
  return failure;
}

static int end(struct work *w, int failure) {
  mgpu_sparse_undescribe(w->use.vendor, &w->operands);
  mgpu_sparse_end(&w->use, NULL);
  return failure ? failure : mgpu_pending();
}

int mgpu_gpu_product_size(enum mgpu_product product, const struct mgpu_sparse_call *call, size_t *size) {
  struct work work;
  *size = 0;
  int failure = begin(&work, product, call, NULL);
  if (failure)
    return failure;
  failure = end(&work, run(&work, size, NULL));
  *size += mgpu_sparse_split_size(call);
  *size += *size == 0;
  return failure;
}

/* Some versions of the libraries keep with a descriptor what they find out while they are asked for the size,
 * so the question comes before every product. */
int mgpu_gpu_product(enum mgpu_product product, const struct mgpu_sparse_call *call, void *workspace) {
  struct work work;
  size_t split = mgpu_sparse_split_size(call), size;
  if (split && !workspace)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "%s needs its workspace, into which pairs of indices are split; it is NULL.",
                     call->what);
  int failure = begin(&work, product, call, split ? workspace : NULL);
  if (failure)
    return failure;
  failure = run(&work, &size, NULL);
  if (!failure && size > 0 && !workspace)
    failure =
        mgpu_fail(MGPU_ERROR_INVALID, "%s needs a workspace of %zu bytes; it is NULL.", call->what, size);
  if (!failure)
    failure = run(&work, NULL, workspace ? (char *)workspace + split : NULL);
  return end(&work, failure);
}
