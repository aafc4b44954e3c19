/* module.c: finds the image that fits a device, loads it once, and keeps kernel handles. */
#include "abi/module.h"

#include "core/error.h"
#include "core/thread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *title(const struct mgpu_module *module) { return module->name ? module->name : "<raw>"; }

static bool of_module(const struct mgpu_module *module, const struct mgpu_image *image) {
  return !module->name || !*image->module || strcmp(module->name, image->module) == 0;
}

static int damaged(const struct mgpu_module *module, const char *problem) {
  return mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The image container of gpu.module \"%s\" is damaged: %s.",
                   title(module), problem);
}

static int none_fits(const struct mgpu_module *module, int backend, int device) {
  char buffer[900] = "";
  struct mgpu_text text = {buffer, sizeof buffer, 0};
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem, *separator = "";
  mgpu_image_reader_init(&reader, module->begin, module->end);
  while (mgpu_image_next(&reader, &image, &problem) == 1)
    if (of_module(module, &image)) {
      mgpu_text_add(&text, "%s%s %s %s%s", separator, image.target, image.arch, image.format,
                    mgpu_image_loadable(&image) ? ""
                                                : " (no driver loads this format: build with format=bin)");
      separator = ", ";
    }
  mgpu_text_add(&text, "%s. Devices: ", *separator ? "" : "none");
  mgpu_backend_list(&text);
  const struct mgpu_backend *vendor = mgpu_backends[backend];
  mgpuDeviceInfo info = {.chip = ""};
  if (strcmp(vendor->target, "host") != 0 && vendor->device_info(device, &info) == 0)
    info.chip[strcspn(info.chip, ":")] = 0; /* settings are behind it, which images may leave open */
  return mgpu_fail(MGPU_ERROR_NO_IMAGE,
                   "No image of gpu.module \"%s\" fits %s:%d. Images: %s. Build for this device, too: "
                   "--target %s%s%s.",
                   title(module), vendor->name, device, buffer, vendor->target, *info.chip ? ":" : "",
                   info.chip);
}

/* The image for the device, or the raw bytes. 0, or a failure. */
static int pick(const struct mgpu_module *module, int backend, int device, struct mgpu_image *best) {
  const struct mgpu_backend *vendor = mgpu_backends[backend];
  if (module->target) {
    if (strcmp(module->target, vendor->target) != 0)
      return mgpu_fail(MGPU_ERROR_NO_IMAGE,
                       "The image is for %s, but the backend in use is %s, which runs %s.", module->target,
                       vendor->name, vendor->target);
    *best = (struct mgpu_image){.data = module->begin};
    best->size = (size_t)((const char *)module->end - (const char *)module->begin);
    return 0;
  }
  struct mgpu_image_reader reader;
  struct mgpu_image image;
  const char *problem;
  int best_rank = 0, more;
  mgpu_image_reader_init(&reader, module->begin, module->end);
  while ((more = mgpu_image_next(&reader, &image, &problem)) == 1) {
    if (strcmp(image.target, vendor->target) != 0 || !of_module(module, &image))
      continue;
    int rank = vendor->image_rank(device, &image);
    if (rank > best_rank) {
      best_rank = rank;
      *best = image;
    }
  }
  if (more < 0)
    return damaged(module, problem);
  return best_rank ? 0 : none_fits(module, backend, device);
}

static unsigned loaded_now; /* driver modules; under mgpu_lock */

/* The driver's module for that device; called with the lock held. */
static void *load(struct mgpu_module *module, int backend, int device) {
  void **loaded = &module->loaded[backend][device];
  struct mgpu_image image = {0};
  if (*loaded || pick(module, backend, device, &image))
    return *loaded;
  void *driver = NULL;
  int level = module->jit_level;
  if (image.jit && *image.jit >= '0' && *image.jit <= '4') /* NULL: raw bytes */
    level = *image.jit - '0';
  if (mgpu_backends[backend]->module_load(device, image.data, image.size, level, &driver) == 0) {
    *loaded = driver;
    ++loaded_now;
  }
  return *loaded;
}

int mgpu_module_backend(const struct mgpu_module *module) {
  return mgpu_backend_active(module->begin, module->end, module->target);
}

void *mgpu_kernel_handle(struct mgpu_kernel *kernel, int backend, int device) {
  void **place = &kernel->handles[backend][device];
  void *handle = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (handle)
    return handle;
  mgpu_lock();
  handle = *place;
  if (!handle) {
    void *driver = load(kernel->module, backend, device);
    if (driver && mgpu_backends[backend]->kernel_get(device, driver, kernel->name, &handle) == 0)
      __atomic_store_n(place, handle, __ATOMIC_RELEASE);
    else
      handle = NULL;
  }
  mgpu_unlock();
  return handle;
}

/* What mgpuModuleUnload has emptied stays here for the next that is made: a module or a kernel that a program
 * uses after that is then an error, and no memory of somebody else's. Under mgpu_lock. */
static struct mgpu_module *spare_modules;
static struct mgpu_kernel *spare_kernels;

static struct mgpu_module *new_module(void) {
  mgpu_lock();
  struct mgpu_module *module = spare_modules;
  if (module)
    spare_modules = module->spare;
  mgpu_unlock();
  return module ? module : malloc(sizeof *module);
}

static void put_module(struct mgpu_module *module) {
  mgpu_lock();
  *module = (struct mgpu_module){0};
  module->spare = spare_modules;
  spare_modules = module;
  mgpu_unlock();
}

/* NULL where there is no memory. Called with the lock held. */
static struct mgpu_kernel *new_kernel(struct mgpu_module *module, const char *name) {
  size_t bytes = strlen(name) + 1;
  char *copy = malloc(bytes);
  struct mgpu_kernel *kernel = spare_kernels;
  if (copy && kernel)
    spare_kernels = kernel->next;
  else if (copy)
    kernel = malloc(sizeof *kernel);
  if (!copy || !kernel) {
    free(copy);
    return NULL;
  }
  *kernel = (struct mgpu_kernel){.module = module, .name = memcpy(copy, name, bytes)};
  return kernel;
}

static bool is_loaded(const struct mgpu_module *module) {
  if (module->copy)
    return true;
  mgpu_fail(MGPU_ERROR_INVALID, "The module %p has been unloaded already.", (const void *)module);
  return false;
}

static struct mgpu_module *module_load(const void *data, size_t size, int jit_level, const char *target) {
  struct mgpu_module *module = new_module();
  char *copy = malloc(size + 1); /* text images need a terminator */
  if (!module || !copy) {
    if (module)
      put_module(module);
    free(copy);
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module of %zu bytes.", size);
    return NULL;
  }
  memcpy(copy, data, size);
  copy[size] = 0;
  *module = (struct mgpu_module){.begin = copy, .end = copy + size, .copy = copy, .target = target};
  module->jit_level = jit_level;
  int backend = mgpu_module_backend(module);
  void *driver = NULL;
  if (backend >= 0) {
    mgpu_lock();
    driver = load(module, backend, mgpu_thread()->device[backend]);
    mgpu_unlock();
  }
  if (!driver) {
    put_module(module);
    free(copy);
    return NULL;
  }
  return module;
}

void *mgpuModuleLoad(void *data, size_t size) {
  if (mgpu_pending())
    return NULL;
  if (!data || size == 0 || size > SIZE_MAX / 2) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuModuleLoad needs an image and its size in bytes; it has %zu at %p.",
              size, data);
    return NULL;
  }
  if (mgpu_image_is_container(data, size))
    return module_load(data, size, -1, NULL);
  enum mgpu_blob blob = mgpu_image_blob(data, size);
  const char *target = mgpu_blob_target(blob);
  /* PTX names its version before anything else; other text is nobody's image. */
  if (!*target || (blob == MGPU_BLOB_TEXT && !memmem(data, size, ".version", sizeof ".version" - 1))) {
    mgpu_fail(
        MGPU_ERROR_BAD_IMAGE, "The image is not PTX, a cubin, a fat binary, an hsaco or a shared object%s",
        blob == MGPU_BLOB_TEXT ? "; it is text without the directive .version, with which PTX begins." : ".");
    return NULL;
  }
  return module_load(data, size, -1, target);
}

void *mgpuModuleLoadJIT(void *data, int level) {
  if (mgpu_pending())
    return NULL;
  if (!data || !*(const char *)data) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuModuleLoadJIT needs the text of a module.");
    return NULL;
  }
  return module_load(data, strlen(data), level < 0 ? 0 : level > 4 ? 4 : level, "nvvm");
}

void mgpuModuleUnload(void *pointer) {
  struct mgpu_module *module = pointer;
  if (!module)
    return;
  mgpu_lock();
  if (!is_loaded(module)) { /* two threads may do it at once */
    mgpu_unlock();
    return;
  }
  void *copy = module->copy;
  module->copy = NULL;
  for (int backend = 0; backend < MGPU_BACKENDS; ++backend)
    for (int device = 0; device < MGPU_MAX_DEVICES; ++device)
      if (module->loaded[backend][device]) {
        mgpu_backends[backend]->module_unload(device, module->loaded[backend][device]);
        --loaded_now;
      }
  for (struct mgpu_kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free((void *)(uintptr_t)kernel->name);
    *kernel = (struct mgpu_kernel){.next = spare_kernels};
    spare_kernels = kernel;
  }
  mgpu_unlock();
  free(copy);
  put_module(module);
}

static struct mgpu_kernel *find(struct mgpu_module *module, const char *name) {
  struct mgpu_kernel *kernel = __atomic_load_n(&module->kernels, __ATOMIC_ACQUIRE);
  while (kernel && strcmp(kernel->name, name) != 0)
    kernel = kernel->next;
  return kernel;
}

void *mgpuModuleGetFunction(void *pointer, const char *name) {
  struct mgpu_module *module = pointer;
  if (mgpu_pending())
    return NULL;
  if (!module || !name) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuModuleGetFunction needs a module and a kernel's name.");
    return NULL;
  }
  if (!is_loaded(module))
    return NULL;
  struct mgpu_kernel *kernel = find(module, name);
  if (!kernel) {
    mgpu_lock();
    kernel = find(module, name);
    if (!kernel && (kernel = new_kernel(module, name))) {
      kernel->next = module->kernels;
      __atomic_store_n(&module->kernels, kernel, __ATOMIC_RELEASE);
    }
    mgpu_unlock();
  }
  if (!kernel) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
    return NULL;
  }
  int backend = mgpu_module_backend(module);
  if (backend < 0 || !mgpu_kernel_handle(kernel, backend, mgpu_thread()->device[backend]))
    return NULL;
  return kernel;
}

unsigned mgpu_modules_count(void) {
  mgpu_lock();
  unsigned count = loaded_now;
  mgpu_unlock();
  return count;
}
