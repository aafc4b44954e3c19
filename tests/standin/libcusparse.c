/* libcusparse.c: a stand-in for libcusparse.so.12, beside the stand-in for libcuda.so.1. */
#include "cuda/driver.h"

#include <dlfcn.h>

/* The device whose context is current, by the driver. */
static int current(void) {
  static CUresult (*get)(CUcontext *);
  static CUcontext of_device[2];
  CUcontext context = NULL;
  if (!__atomic_load_n(&get, __ATOMIC_ACQUIRE)) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = dlsym(driver, "cuCtxGetCurrent");
    CUresult (*retain)(CUcontext *, CUdevice);
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    for (int i = 0; i < 2; ++i) {
      CUcontext retained;
      retain(&retained, i);
      __atomic_store_n(&of_device[i], retained, __ATOMIC_RELAXED);
    }
    __atomic_store_n((void **)&get, found, __ATOMIC_RELEASE);
  }
  get(&context);
  for (int i = 0; context && i < 2; ++i)
    if (__atomic_load_n(&of_device[i], __ATOMIC_RELAXED) == context)
      return i;
  return -1;
}

#define PREFIX cusparse
#define ROW_ORDER 2
#define VERSION 12904
#define CURRENT() current()
#define SAMPLES(format) ((format) == CSR || (format) == BSR)
#include "sparse_library.h"
