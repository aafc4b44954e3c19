/* devices_cuda.c: a stand-in for libcuda.so.1 that has devices and nothing that runs on them: what is asked for
 * when devices are looked for, of an sm_90 and an sm_121 that differ in everything.
 *
 * Environment: STANDIN_DEVICES, how many (2 when unset; 0: the driver answers "no device"); STANDIN_REFUSES,
 * "CALL" or "CALL DEVICE" that answers an error; STANDIN_COUNTS_NONE: it starts, and counts no device.
 * Compiled with OLD: without cuGetProcAddress_v2, as drivers before CUDA 12. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, NOT_FOUND = 500, UNKNOWN = 999 };

static const struct {
  const char *name;
  size_t memory;
  int major, minor, processors;
} known[] = {{"Stand-in H", (size_t)80 << 30, 9, 0, 132}, {"Stand-in G", (size_t)128 << 30, 12, 1, 48}};

static int count(void) {
  const char *value = getenv("STANDIN_DEVICES");
  return value ? atoi(value) : 2;
}

/* Handles are no indices, so that one is not taken for the other. */
enum { FIRST_HANDLE = 40 };

static int refused(const char *call, int handle) {
  const char *value = getenv("STANDIN_REFUSES");
  char with_device[64];
  snprintf(with_device, sizeof with_device, "%s %d", call, handle - FIRST_HANDLE);
  return value && (!strcmp(value, call) || !strcmp(value, with_device)) ? UNKNOWN : SUCCESS;
}

static int started;

#define ASKED(handle)                                                                                        \
  do {                                                                                                       \
    int refusal = refused(__func__, handle);                                                                 \
    if (refusal)                                                                                             \
      return refusal;                                                                                        \
  } while (0)
#define ASKED_OF(handle)                                                                                     \
  ASKED(handle);                                                                                             \
  if (!started || handle < FIRST_HANDLE || handle >= FIRST_HANDLE + count())                                 \
  return INVALID_DEVICE

EXPORT int cuInit(unsigned flags) {
  ASKED(0);
  started = flags == 0 && count() > 0;
  return flags ? INVALID_VALUE : started ? SUCCESS : NO_DEVICE;
}

EXPORT int cuGetErrorName(int error, const char **name) {
  *name = error == NO_DEVICE  ? "CUDA_ERROR_NO_DEVICE"
          : error == UNKNOWN  ? "CUDA_ERROR_UNKNOWN"
          : error == SUCCESS  ? "CUDA_SUCCESS"
                              : NULL;
  return *name ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuDriverGetVersion(int *version) {
  ASKED(0);
  *version = 12090;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *out) {
  ASKED(0);
  *out = getenv("STANDIN_COUNTS_NONE") ? 0 : count();
  return SUCCESS;
}

EXPORT int cuDeviceGet(int *handle, int index) {
  ASKED(FIRST_HANDLE + index);
  *handle = FIRST_HANDLE + index;
  return index < count() ? SUCCESS : INVALID_DEVICE;
}

EXPORT int cuDeviceGetName(char *name, int size, int handle) {
  ASKED_OF(handle);
  snprintf(name, (size_t)size, "%s", known[handle - FIRST_HANDLE].name);
  return SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int handle) {
  ASKED_OF(handle);
  *bytes = known[handle - FIRST_HANDLE].memory;
  return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int handle) {
  ASKED_OF(handle);
  int device = handle - FIRST_HANDLE;
  *value = attribute == 16   ? known[device].processors
           : attribute == 75 ? known[device].major
           : attribute == 76 ? known[device].minor
                             : -1;
  return *value < 0 ? INVALID_VALUE : SUCCESS;
}

/* How cuda.bindings finds every function: by the name without its version. */
static int address(const char *name, void **out) {
  char versioned[96];
  Dl_info here;
  if (!dladdr((void *)&known, &here))
    return NOT_FOUND;
  void *library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  snprintf(versioned, sizeof versioned, "%s_v2", name);
  *out = dlsym(library, versioned);
  if (!*out)
    *out = dlsym(library, name);
  dlclose(library);
  return *out ? SUCCESS : NOT_FOUND;
}

#ifndef OLD
EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags, int *status) {
  (void)version, (void)flags;
  int result = address(name, out);
  if (status)
    *status = result == SUCCESS ? 0 : 1;
  return result;
}
#endif
