/* module.c: modules and kernels of a GPU driver, as the backends keep them. */
#include "vendor/vendor.h"

#include "core/error.h"
#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Held while the name of a kernel that may be going is read. */
static pthread_mutex_t names = PTHREAD_MUTEX_INITIALIZER;

void mgpu_vendor_names_lock(void) { pthread_mutex_lock(&names); }

void mgpu_vendor_names_unlock(void) { pthread_mutex_unlock(&names); }

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

void mgpu_vendor_last_kernel(const struct mgpu_vendor *vendor, int device, struct mgpu_text *to) {
  const struct mgpu_unwaited *unwaited = &mgpu_thread()->unwaited;
  if (unwaited->named > 1) {
    mgpu_text_add(to, "; the kernels launched since the last wait are");
    for (unsigned i = 0; i < unwaited->named; ++i)
      mgpu_text_add(to, "%s \"%.64s\"", i ? "," : "", unwaited->names[i]);
    mgpu_text_add(to, "%s", unwaited->named == MGPU_UNWAITED_NAMES ? " and maybe others" : "");
    return;
  }
  mgpu_vendor_names_lock();
  const struct mgpu_vendor_kernel *kernel = __atomic_load_n(&vendor->launched[device], __ATOMIC_ACQUIRE);
  if (kernel)
    mgpu_text_add(to, "; the kernel launched last there is \"%.128s\"", kernel->name);
  mgpu_vendor_names_unlock();
}

/* The kernel is going: nobody may ask for its name any more. */
static void forget(struct mgpu_vendor *vendor, const struct mgpu_vendor_kernel *kernel) {
  mgpu_vendor_names_lock();
  for (int device = 0; device < MGPU_MAX_DEVICES; ++device)
    if (__atomic_load_n(&vendor->launched[device], __ATOMIC_RELAXED) == kernel)
      __atomic_store_n(&vendor->launched[device], NULL, __ATOMIC_RELAXED);
  mgpu_vendor_names_unlock();
}

void mgpu_vendor_module_free(struct mgpu_vendor *vendor, struct mgpu_vendor_module *module) {
  for (struct mgpu_vendor_kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    forget(vendor, kernel);
    free(kernel);
  }
  free(module->copy);
  free(module);
}
