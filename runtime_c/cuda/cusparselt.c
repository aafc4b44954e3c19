/* cusparselt.c: cuSPARSELt, loaded at its first use, and its handle for each device. */
#include "cuda/cusparselt.h"

#include "core/error.h"
#include "cuda/backend.h"
#include "cuda/sparse.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, OLDEST = 600 /* 0.6.0 */ };

/* A device's handle of the library. */
struct device {
  cusparseLtHandle_t *handle;
  int plans; /* that use it */
};

/* All under the lock of first uses; what a plan uses stays as it is. */
struct cusparselt mgpu_lt;
static bool loaded;
static struct device devices[MGPU_MAX_DEVICES];

static const char *const names[] = {"libcusparseLt.so.0", NULL};
static const char *const roots[] = {"/usr/local/cuda", NULL};
static const char *const packages[] = {"nvidia/cu13/lib", "nvidia/cusparselt/lib", NULL};
struct mgpu_sparse_vendor mgpu_lt_vendor = {
    .backend = MGPU_BACKEND_cuda,
    .prefix = "",
    .status_prefix = "CUSPARSE_",
    .library = {.product = "cuSPARSELt",
                .names = names,
                .variable = "CUDA_HOME",
                .roots = roots,
                .packages = packages,
                .advice = "pip install nvidia-cusparselt-cu13 (nvidia-cusparselt-cu12 with CUDA 12)"},
};

static const char *bind(void *library) {
  const char *missing = NULL;
#define LT_FUNCTION(name, params)                                                                            \
  *(void **)&mgpu_lt.name = dlsym(library, #name);                                                           \
  if (!mgpu_lt.name && !missing)                                                                             \
    missing = #name;
#define LT_OPTIONAL(name, params) *(void **)&mgpu_lt.name = dlsym(library, #name);
#define LT_TEXT(name, params) *(void **)&mgpu_lt_vendor.functions.GetErrorString = dlsym(library, #name);
#include "cuda/cusparselt.def"
  return missing;
}

static int load(void) {
  void *library;
  const char *name;
  if (loaded)
    return 0;
  int failure = mgpu_library_open(&mgpu_lt_vendor.library, &library, &name);
  if (failure)
    return failure;
  const char *missing = bind(library);
  if (missing)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "%s has no %s; %s.", name, missing,
                     mgpu_lt_vendor.library.advice);
  loaded = true;
  return 0;
}

/* Makes the current device's handle. */
static int make_handle(struct device *device) {
  int version = 0;
  cusparseLtHandle_t *handle = aligned_alloc(ALIGNMENT, sizeof *handle);
  if (!handle)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a handle of cuSPARSELt.");
  memset(handle, 0, sizeof *handle);
  int failure = MGPU_LT(cusparseLtInit, (handle));
  if (failure) {
    free(handle);
    return failure;
  }
  failure = MGPU_LT(cusparseLtGetVersion, (handle, &version));
  if (!failure && version < OLDEST)
    failure = mgpu_fail(MGPU_ERROR_UNSUPPORTED, "cuSPARSELt %d.%d is too old: 0.6 is needed; %s.",
                        version / 1000, version / 100 % 10, mgpu_lt_vendor.library.advice);
  if (failure) {
    MGPU_LT(cusparseLtDestroy, (handle));
    free(handle);
    return failure;
  }
  device->handle = handle;
  return 0;
}

int mgpu_lt_take(int index) {
  mgpu_init_lock();
  int failure = load();
  if (!failure && !devices[index].handle)
    failure = make_handle(&devices[index]);
  devices[index].plans += !failure;
  mgpu_init_unlock();
  return failure;
}

void mgpu_lt_give(int index) {
  mgpu_init_lock();
  --devices[index].plans;
  mgpu_init_unlock();
}

const cusparseLtHandle_t *mgpu_lt_handle(int device) { return devices[device].handle; }

void mgpu_cuda_trim_2to4(void) {
  for (int i = 0; i < MGPU_MAX_DEVICES; ++i) {
    void *previous;
    mgpu_init_lock();
    bool unused = devices[i].handle && devices[i].plans == 0;
    cusparseLtHandle_t *handle = unused ? devices[i].handle : NULL;
    if (unused)
      devices[i].handle = NULL;
    mgpu_init_unlock();
    if (!handle)
      continue;
    if (mgpu_cuda_reach(i, &previous)) {
      MGPU_LT(cusparseLtDestroy, (handle));
      mgpu_cuda_leave(i, previous);
    }
    free(handle);
  }
}
