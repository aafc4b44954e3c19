/* sparse.c: sparse operations of the CUDA backend, through cuSPARSE. */
#include "cuda/sparse.h"

#include "cuda/backend.h"

enum {
#define CUDA_SPARSE_CONSTANT(name, value) name = value,
#include "cuda/sparse.def"
};

/* The ABI's codes are the library's. */
_Static_assert((int)MGPU_F32 == CUDA_R_32F && (int)MGPU_F64 == CUDA_R_64F && (int)MGPU_F16 == CUDA_R_16F &&
                   (int)MGPU_I8 == CUDA_R_8I && (int)MGPU_C32 == CUDA_C_32F && (int)MGPU_C64 == CUDA_C_64F &&
                   (int)MGPU_C16 == CUDA_C_16F && (int)MGPU_I32 == CUDA_R_32I &&
                   (int)MGPU_BF16 == CUDA_R_16BF && (int)MGPU_CBF16 == CUDA_C_16BF,
               "types");

static int enter(int device, void **previous) {
  CUcontext before = NULL;
  int failure = mgpu_cuda_enter(device, &before);
  *previous = before;
  return failure;
}

static void leave(int device, void *previous) { mgpu_cuda_leave(device, previous); }

bool mgpu_cuda_reach(int device, void **previous) {
  const char *call;
  CUcontext before = NULL;
  bool reached = mgpu_cuda_try_enter(device, &before, &call) == CUDA_SUCCESS;
  *previous = before;
  return reached;
}

static int order(int version) {
  (void)version;
  return CUSPARSE_ORDER_ROW;
}

static const char *const names[] = {"libcusparse.so.12", NULL}; /* of CUDA 12 and of CUDA 13 */
static const char *const roots[] = {"/usr/local/cuda", NULL};
static const char *const packages[] = {"nvidia/cu13/lib", "nvidia/cusparse/lib", NULL};

static struct mgpu_sparse_vendor cusparse = {
    .backend = MGPU_BACKEND_cuda,
    .prefix = "cusparse",
    .status_prefix = "CUSPARSE_",
    .library = {.product = "cuSPARSE",
                .names = names,
                .variable = "CUDA_HOME",
                .roots = roots,
                .packages = packages,
                .advice =
                    "pip install nvidia-cusparse (nvidia-cusparse-cu12 with CUDA 12), or set CUDA_HOME to "
                    "a CUDA toolkit of version 12 or later"},
    .enter = enter,
    .leave = leave,
    .reach = mgpu_cuda_reach,
    .order = order,
};

static void release(struct mgpu_sparse *operand) {
  if (operand->kind == MGPU_SPGEMM)
    mgpu_gpu_spgemm_release(operand);
  else
    mgpu_cuda_release_2to4(operand);
}

static void trim(void) {
  mgpu_sparse_trim(&cusparse);
  mgpu_cuda_trim_2to4();
}

const struct mgpu_sparse_ops mgpu_cuda_sparse = {
    .vendor = &cusparse,
    .product_size = mgpu_gpu_product_size,
    .product = mgpu_gpu_product,
    .spgemm_estimate = mgpu_gpu_spgemm_estimate,
    .spgemm_compute = mgpu_gpu_spgemm_compute,
    .spgemm_copy = mgpu_gpu_spgemm_copy,
    .plan_2to4 = mgpu_cuda_plan_2to4,
    .product_2to4 = mgpu_cuda_product_2to4,
    .release = release,
    .trim = trim,
};
