/* module.h: loaded modules and kernels, one per device, behind the slots and handles of the ABI. */
#ifndef MGPU_INTERNAL_MODULE_H
#define MGPU_INTERNAL_MODULE_H

#include "core/backend.h"

/* A gpu.module. Of a slot: [begin, end) is the artifact's container, and the module lives for ever. Raw (from
 * mgpuModuleLoad): a private copy of the caller's bytes, freed by mgpuModuleUnload; the struct is kept for
 * the next. */
struct mgpu_module {
  const void *begin;
  const void *end;
  const char *name;   /* NULL: any module's images count */
  void *copy;         /* raw: what begin points to, NULL once it is unloaded; else NULL */
  const char *target; /* raw and not a container: the one target it is for; else NULL */
  int jit_level;
  struct mgpu_kernel *kernels;                   /* raw: those asked for, newest first; atomic */
  void *loaded[MGPU_BACKENDS][MGPU_MAX_DEVICES]; /* driver modules; under mgpu_lock */
  struct mgpu_module *spare;                     /* the next that is unloaded; under mgpu_lock */
};

/* A kernel of a module. `name` belongs to the slot or, raw, to the kernel. */
struct mgpu_kernel {
  struct mgpu_kernel *next;
  struct mgpu_module *module; /* NULL once that is unloaded */
  const char *name;
  void *handles[MGPU_BACKENDS][MGPU_MAX_DEVICES]; /* driver kernels; atomic */
};

/* The driver's kernel for that device, loading the module at first need. NULL after mgpu_fail. Any thread. */
void *mgpu_kernel_handle(struct mgpu_kernel *kernel, int backend, int device);

/* The backend in use, chosen by this module's images if none was. -1 after mgpu_fail. */
int mgpu_module_backend(const struct mgpu_module *module);

/* How many driver modules are loaded. */
unsigned mgpu_modules_count(void);

#endif
