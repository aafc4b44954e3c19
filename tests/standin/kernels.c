/* kernels.c: what a stand-in driver's launches do: the kernels of a program for real, with the CPU's code out
 * of a library of that program, on the host backend of the runtime in it.
 *
 * The memory of a stand-in driver is the CPU's, and a kernel's parameters are the same on every target. The
 * library must be another file than the one whose launches come here, since a file loaded twice is one
 * library with one backend. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mgpu.h"

#define EXPORT __attribute__((visibility("default")))

enum { KERNELS = 32 };

static const mgpuApi *api;
static mgpuModuleSlot *modules; /* ends with one without a name */
static mgpuKernelSlot slots[KERNELS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void stop(const char *what, const char *why) {
  fprintf(stderr, "kernels.c: %s: %s\n", what, why);
  abort();
}

/* Opens the library. Touches no device. */
EXPORT void kernels_load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    stop(path, dlerror());
  const mgpuApi *(*entry)(uint32_t);
  *(void **)&entry = dlsym(library, "offload_api");
  modules = dlsym(library, "offload_modules");
  api = entry ? entry(MGPU_ABI_VERSION) : NULL;
  if (!api || !modules)
    stop(path, "no runtime or no kernels");
}

/* Makes a kernel of the library known. Called before the first launch. */
EXPORT void kernels_add(const char *module, const char *name) {
  mgpuModuleSlot *owner = modules;
  int i = 0;
  while (owner->name && strcmp(owner->name, module) != 0)
    ++owner;
  while (i < KERNELS && slots[i].name)
    ++i;
  if (!owner->name || i == KERNELS)
    stop(module, "no such module, or too many kernels");
  slots[i] = (mgpuKernelSlot){.module = owner, .name = strdup(name)};
}

static void start(void) {
  if (api->mgpuBackendUse("host"))
    stop("mgpuBackendUse", api->mgpuGetLastErrorMessage());
}

/* For standin_kernels. */
EXPORT void kernels_run(const char *name, const unsigned grid[3], const unsigned block[3], unsigned smem,
                        void **params) {
  pthread_once(&once, start);
  int i = 0;
  while (i < KERNELS && slots[i].name && strcmp(slots[i].name, name) != 0)
    ++i;
  if (i == KERNELS || !slots[i].name)
    stop(name, "unknown");
  api->mgpuKernelLaunch(&slots[i], grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, 0, 0,
                        (int32_t)smem, NULL, params, 0, 1);
  if (api->mgpuGetLastError())
    stop(name, api->mgpuGetLastErrorMessage());
}
