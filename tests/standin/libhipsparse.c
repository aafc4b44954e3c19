/* libhipsparse.c: a stand-in for libhipsparse.so.4, and with OLD for the libhipsparse.so.0 of Debian 12,
 * beside the stand-in for libamdhip64.so.6. */
#include "hip/driver.h"

#include <dlfcn.h>

static int current(void) {
  static hipError_t (*get)(int *);
  int device = -1;
  if (!__atomic_load_n(&get, __ATOMIC_ACQUIRE))
    __atomic_store_n((void **)&get, dlsym(dlopen("libamdhip64.so.6", RTLD_NOW), "hipGetDevice"),
                     __ATOMIC_RELEASE);
  get(&device);
  return device;
}

#define PREFIX hipsparse
#define CURRENT() current()
#define SAMPLES(format) ((format) != BSR)
#ifdef OLD
#define ROW_ORDER 0
#define VERSION 200302
#else
#define ROW_ORDER 2
#define VERSION version()
static int version(void);
#endif
#include "sparse_library.h"

#ifndef OLD
/* STANDIN_HIPSPARSE: another version to tell. */
static int version(void) {
  const char *asked_for = getenv("STANDIN_HIPSPARSE");
  return asked_for ? atoi(asked_for) : 400300;
}
#endif
