/* sparse_2to4.c: 2:4 sparse matrices of the CUDA backend, through cuSPARSELt. */
#include "core/error.h"
#include "cuda/backend.h"
#include "cuda/cusparselt.h"
#include "cuda/sparse.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_ORDER = 2, /* CUSPARSE_ORDER_ROW */ ALIGNMENT = 16 };

/* The plan of a product, which a 2:4 matrix keeps as its state. */
struct plan {
  int device;
  struct shape {
    int64_t rows, cols;
    int type;
  } b, c;
  cusparseLtMatDescriptor_t of[3]; /* A, B, C */
  int made;                        /* of them */
  cusparseLtMatmulDescriptor_t product;
  cusparseLtMatmulAlgSelection_t way;
  bool has_way, has_plan;
  cusparseLtMatmulPlan_t plan;
};

static struct shape shape_of(const struct mgpu_sparse *dense) {
  return (struct shape){dense->rows, dense->cols, dense->type};
}

static bool same_shape(const struct shape *shape, const struct mgpu_sparse *dense) {
  return shape->rows == dense->rows && shape->cols == dense->cols && shape->type == dense->type;
}

/* On the device of the plan. */
static void destroy(struct plan *p) {
  if (p->has_plan)
    MGPU_LT(cusparseLtMatmulPlanDestroy, (&p->plan));
  if (p->has_way && mgpu_lt.cusparseLtMatmulAlgSelectionDestroy)
    MGPU_LT(cusparseLtMatmulAlgSelectionDestroy, (&p->way));
  while (p->made)
    MGPU_LT(cusparseLtMatDescriptorDestroy, (&p->of[--p->made]));
}

void mgpu_cuda_release_2to4(struct mgpu_sparse *matrix) {
  struct plan *p = matrix->state;
  void *previous;
  matrix->state = NULL;
  if (!p)
    return;
  if (mgpu_cuda_reach(p->device, &previous)) {
    destroy(p);
    mgpu_cuda_leave(p->device, previous);
  }
  mgpu_lt_give(p->device);
  free(p);
}

/* What the descriptors promise of each operand's memory. Pruning elsewhere faults, and the device is lost. */
static int check_aligned(const struct mgpu_sparse_call *call) {
  const struct mgpu_sparse *const operands[] = {call->a, call->b, call->c};
  for (int i = 0; i < 3; ++i)
    if ((uintptr_t)operands[i]->values % ALIGNMENT)
      return mgpu_fail(MGPU_ERROR_INVALID,
                       "2:4 SpMM needs memory at multiples of %d bytes; its operand %c is at %p.", ALIGNMENT,
                       "ABC"[i], operands[i]->values);
  return 0;
}

/* The library's description of the product. */
static int describe_product(struct plan *p, const struct mgpu_sparse_call *call) {
  int mode_a = mgpu_sparse_mode(call->mode_a, call->a), mode_b = mgpu_sparse_mode(call->mode_b, call->b);
  int status = mgpu_lt.cusparseLtMatmulDescriptorInit(
      mgpu_lt_handle(p->device), &p->product, mode_a, mode_b, &p->of[0], &p->of[1], &p->of[2], &p->of[2],
      call->compute == MGPU_I32 ? CUSPARSE_COMPUTE_32I : CUSPARSE_COMPUTE_32F);
  /* The rule of 0.8; a later version may take more. */
  if (status == MGPU_SPARSE_STATUS_NOT_SUPPORTED && call->a->type == MGPU_I8 &&
      (mode_a != MGPU_AS_IS || mode_b == MGPU_AS_IS))
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "cuSPARSELt multiplies i8 with A as it is and B transposed alone, each with the values "
                     "that are summed side by side: store B by columns, and use it transposed "
                     "(CUSPARSE_STATUS_NOT_SUPPORTED of cusparseLtMatmulDescriptorInit).");
  return mgpu_sparse_result(&mgpu_lt_vendor, status, "cusparseLtMatmulDescriptorInit", call);
}

/* Everything up to the library's plan. */
static int make(struct plan *p, const struct mgpu_sparse_call *call) {
  const cusparseLtHandle_t *handle = mgpu_lt_handle(p->device);
  const struct mgpu_sparse *a = call->a, *const dense[] = {call->b, call->c};
  int failure =
      MGPU_LT(cusparseLtStructuredDescriptorInit, (handle, &p->of[0], a->rows, a->cols, a->cols, ALIGNMENT,
                                                   a->type, ROW_ORDER, CUSPARSELT_SPARSITY_50_PERCENT));
  p->made += !failure;
  for (int i = 0; i < 2 && !failure; ++i) {
    failure = MGPU_LT(cusparseLtDenseDescriptorInit, (handle, &p->of[i + 1], dense[i]->rows, dense[i]->cols,
                                                      dense[i]->cols, ALIGNMENT, dense[i]->type, ROW_ORDER));
    p->made += !failure;
  }
  if (failure)
    return failure;
  failure = describe_product(p, call);
  if (failure)
    return failure;
  failure = MGPU_LT(cusparseLtMatmulAlgSelectionInit,
                    (handle, &p->way, &p->product, CUSPARSELT_MATMUL_ALG_DEFAULT));
  p->has_way = !failure;
  if (failure)
    return failure;
  failure = MGPU_LT(cusparseLtMatmulPlanInit, (handle, &p->plan, &p->product, &p->way));
  p->has_plan = !failure;
  return failure;
}

/* Waits for the answer whether A is 2:4. The library writes it where A is not, and nothing where it is. */
static int check_pruned(const struct plan *p, const struct mgpu_sparse_call *call) {
  const struct mgpu_backend *backend = mgpu_backends[call->place.backend];
  int device = p->device, invalid = 1;
  void *stream = call->place.driver, *answer;
  int failure = backend->alloc(device, sizeof invalid, stream, false, &answer);
  if (failure)
    return failure;
  failure = backend->memset(device, answer, 0, 1, sizeof invalid, stream);
  if (!failure)
    failure = MGPU_LT(cusparseLtSpMMAPruneCheck,
                      (mgpu_lt_handle(device), &p->product, call->a->values, answer, stream));
  if (!failure)
    failure = backend->memcpy(device, &invalid, answer, sizeof invalid, stream);
  if (!failure)
    failure = backend->stream_sync(device, stream);
  int freed = backend->free(device, answer, stream, false);
  if (failure || freed)
    return failure ? failure : freed;
  return invalid
             ? mgpu_fail(MGPU_ERROR_DRIVER, "cuSPARSELt has pruned the matrix and finds it not 2:4 sparse.")
             : 0;
}

static int prune_and_size(const struct plan *p, const struct mgpu_sparse_call *call, enum mgpu_prune prune,
                          int64_t sizes[3]) {
  const cusparseLtHandle_t *handle = mgpu_lt_handle(p->device);
  void *values = call->a->values;
  size_t workspace = 0, shortened = 0, shortening = 0;
  int failure = prune == MGPU_PRUNE_NONE
                    ? 0
                    : MGPU_LT(cusparseLtSpMMAPrune, (handle, &p->product, values, values,
                                                     CUSPARSELT_PRUNE_SPMMA_STRIP, call->place.driver));
  if (!failure && prune == MGPU_PRUNE_AND_CHECK)
    failure = check_pruned(p, call);
  if (!failure)
    failure = MGPU_LT(cusparseLtMatmulGetWorkspace, (handle, &p->plan, &workspace));
  if (!failure)
    failure = MGPU_LT(cusparseLtSpMMACompressedSize, (handle, &p->plan, &shortened, &shortening));
  if (failure)
    return failure;
  sizes[0] = (int64_t)workspace + !workspace; /* nobody is asked to allocate nothing */
  sizes[1] = (int64_t)shortened + !shortened;
  sizes[2] = (int64_t)shortening + !shortening;
  return 0;
}

int mgpu_cuda_plan_2to4(const struct mgpu_sparse_call *call, enum mgpu_prune prune, int64_t sizes[3]) {
  int device = call->place.device;
  CUcontext previous;
  mgpu_cuda_release_2to4(call->a);
  if (check_aligned(call))
    return mgpu_pending();
  struct plan *p = aligned_alloc(_Alignof(struct plan), sizeof *p);
  if (!p)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the plan of a sparse product.");
  memset(p, 0, sizeof *p);
  p->device = device;
  p->b = shape_of(call->b);
  p->c = shape_of(call->c);
  int failure = mgpu_cuda_enter(device, &previous);
  if (failure) {
    free(p);
    return failure;
  }
  failure = mgpu_lt_take(device);
  if (failure) {
    free(p);
  } else {
    failure = make(p, call);
    if (!failure)
      failure = prune_and_size(p, call, prune, sizes);
    if (failure) {
      destroy(p);
      mgpu_lt_give(device);
      free(p);
    } else {
      call->a->state = p;
    }
  }
  mgpu_cuda_leave(device, previous);
  return failure;
}

int mgpu_cuda_product_2to4(const struct mgpu_sparse_call *call, void *const buffers[3]) {
  static const float one = 1; /* in every compute type */
  const struct plan *p = call->a->state;
  if (!p || !same_shape(&p->b, call->b) || !same_shape(&p->c, call->c) || p->device != call->place.device)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "2:4 SpMM needs mgpuCuSparseLtSpMMBufferSize before it, for operands of the same shapes "
                     "and types on the same device.");
  if (!buffers[0] || !buffers[1] || !buffers[2])
    return mgpu_fail(MGPU_ERROR_INVALID, "2:4 SpMM needs three buffers; one is NULL.");
  const cusparseLtHandle_t *handle = mgpu_lt_handle(p->device);
  cudaStream_t stream = call->place.driver;
  CUcontext previous;
  int failure = check_aligned(call);
  if (!failure)
    failure = mgpu_cuda_enter(p->device, &previous);
  if (failure)
    return failure;
  failure =
      MGPU_LT(cusparseLtSpMMACompress, (handle, &p->plan, call->a->values, buffers[1], buffers[2], stream));
  if (!failure)
    failure = MGPU_LT(cusparseLtMatmul, (handle, &p->plan, &one, buffers[1], call->b->values, &one,
                                         call->c->values, call->c->values, buffers[0], &stream, 1));
  mgpu_cuda_leave(p->device, previous);
  return failure;
}
