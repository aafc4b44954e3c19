/* sparse.c: sparse operations of the HIP backend, through hipSPARSE. */
#include "core/error.h"
#include "hip/backend.h"
#include "sparse/gpu.h"

enum {
#define HIP_SPARSE_CONSTANT(name, value) name = value,
#include "hip/sparse.def"
};

/* The ABI's codes are the library's. */
_Static_assert((int)MGPU_F32 == HIP_R_32F && (int)MGPU_F64 == HIP_R_64F && (int)MGPU_F16 == HIP_R_16F &&
                   (int)MGPU_C32 == HIP_C_32F && (int)MGPU_C64 == HIP_C_64F && (int)MGPU_C16 == HIP_C_16F,
               "types");

#define VERSION(major, minor, patch) ((major) * 100000 + (minor) * 100 + (patch))

/* The caller's device is kept as a pointer's bits. */
static int enter(int device, void **previous) {
  int before = device, failure = mgpu_hip_enter(device, &before);
  *previous = (void *)(intptr_t)before;
  return failure;
}

static void leave(int device, void *previous) { mgpu_hip_leave(device, (int)(intptr_t)previous); }

static bool reach(int device, void **previous) {
  const char *call;
  int before = device;
  bool reached = mgpu_hip_try_enter(device, &before, &call) == hipSuccess;
  *previous = (void *)(intptr_t)before;
  return reached;
}

/* The number of HIPSPARSE_ORDER_ROW was changed between 2.3.2 and 3.0; a wrong one ends the process. */
static int order(int version) {
  if (version > VERSION(2, 3, 2) && version < VERSION(3, 0, 0))
    return MGPU_SPARSE_ORDER_UNKNOWN;
  return version >= VERSION(3, 0, 0) ? 2 : 0;
}

/* The library ends the process where it meets a type that it does not know. */
static int check_type(int version, int type) {
  int least = VERSION(1, 0, 0);
  if (type == MGPU_F16 || type == MGPU_I8 || type == MGPU_I32)
    least = VERSION(4, 0, 0);
  else if (type == MGPU_BF16)
    least = VERSION(4, 1, 0);
  else if (type == MGPU_C16 || type == MGPU_CBF16)
    least = INT32_MAX;
  if (version >= least)
    return 0;
  return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "hipSPARSE %d.%d.%d knows no %s%s.", version / 100000,
                   version / 100 % 1000, version % 100, mgpu_sparse_type_name(type),
                   least == INT32_MAX  ? ""
                   : type == MGPU_BF16 ? "; it came with 4.1 (ROCm 7.1)"
                                       : "; it came with 4.0 (ROCm 7)");
}

/* ROCm 7, 6, and 5 and Debian. */
static const char *const names[] = {"libhipsparse.so.4", "libhipsparse.so.1", "libhipsparse.so.0", NULL};
static const char *const roots[] = {"/opt/rocm", NULL};
static const char *const packages[] = {NULL};

static struct mgpu_sparse_vendor hipsparse = {
    .backend = MGPU_BACKEND_hip,
    .prefix = "hipsparse",
    .status_prefix = "HIPSPARSE_",
    .library = {.product = "hipSPARSE",
                .names = names,
                .variable = "ROCM_PATH",
                .roots = roots,
                .packages = packages,
                .advice =
                    "apt-get install hipsparse (of ROCm) or libhipsparse0 (of Debian), or set ROCM_PATH to "
                    "a ROCm installation"},
    .enter = enter,
    .leave = leave,
    .reach = reach,
    .order = order,
    .check_type = check_type,
    .has_scratch = true, /* of rocSPARSE: partial sums of an SpMV in COO, for one */
};

static int no_2to4(void) {
  return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "hipSPARSE has no 2:4 sparse matrices, and hipSPARSELt, which "
                                           "has, is not used here; they are multiplied on the "
                                           "backends cuda and host.");
}

static int plan_2to4(const struct mgpu_sparse_call *call, enum mgpu_prune prune, int64_t sizes[3]) {
  (void)call;
  (void)prune;
  (void)sizes;
  return no_2to4();
}

static int product_2to4(const struct mgpu_sparse_call *call, void *const buffers[3]) {
  (void)call;
  (void)buffers;
  return no_2to4();
}

static void trim(void) { mgpu_sparse_trim(&hipsparse); }

const struct mgpu_sparse_ops mgpu_hip_sparse = {
    .vendor = &hipsparse,
    .product_size = mgpu_gpu_product_size,
    .product = mgpu_gpu_product,
    .spgemm_estimate = mgpu_gpu_spgemm_estimate,
    .spgemm_compute = mgpu_gpu_spgemm_compute,
    .spgemm_copy = mgpu_gpu_spgemm_copy,
    .plan_2to4 = plan_2to4,
    .product_2to4 = product_2to4,
    .release = mgpu_gpu_spgemm_release,
    .trim = trim,
};
