/* vendor_module.c: modules and kernels of a GPU driver, as the backends keep them. */
#include "vendor.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

void *mgpu_vendor_kernel_new(size_t size, const char *name) {
  size_t length = strlen(name) + 1;
  struct mgpu_vendor_kernel *kernel = calloc(1, size + length);
  if (!kernel) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
    return NULL;
  }
  kernel->name = memcpy((char *)kernel + size, name, length);
  return kernel;
}

void mgpu_vendor_kernel_keep(struct mgpu_vendor_module *module, struct mgpu_vendor_kernel *kernel) {
  kernel->next = module->kernels;
  module->kernels = kernel;
}

struct mgpu_vendor_module *mgpu_vendor_module_new(const void *data, size_t size, bool copied) {
  enum { PAGE = 4096 };
  struct mgpu_vendor_module *module = calloc(1, sizeof *module);
  void *copy = NULL;
  if (!module || (copied && posix_memalign(&copy, PAGE, size + 1))) {
    free(module);
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module of %zu bytes.", size);
    return NULL;
  }
  if (copy) {
    memcpy(copy, data, size);
    ((char *)copy)[size] = 0;
  }
  module->copy = copy;
  return module;
}

void mgpu_vendor_module_free(struct mgpu_vendor_module *module) {
  for (struct mgpu_vendor_kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
  free(module->copy);
  free(module);
}
