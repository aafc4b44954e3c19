/* hip.c: AMD devices through the HIP library, bound at first use.
 *
 * The caller's current device is put back after every call. */
#include "hip_driver.h"

#include "backend.h"
#include "error.h"
#include "hip_layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, READY, ABSENT, FORKED };

struct device {
  bool pools;
  mgpuDeviceInfo info;
};

struct kernel {
  struct kernel *next;
  hipFunction_t function;
  char name[];
};

struct module {
  hipModule_t handle;
  struct kernel *kernels; /* under mgpu_lock */
  void *copy;             /* HIP may read the image later */
};

static struct hip_driver hip;
static int state; /* atomic; the rest is written before it becomes READY or ABSENT */
static int count;
static struct device devices[MGPU_MAX_DEVICES];
static char absence[256];

static int failed(hipError_t result, const char *call) {
  const char *name = hip.hipGetErrorName(result), *meaning = hip.hipGetErrorString(result);
  int code = result == hipErrorOutOfMemory ? MGPU_ERROR_MEMORY : MGPU_ERROR_DRIVER;
  return mgpu_fail(code, "%s failed with %s (%d): %s.", call, name ? name : "an unknown code", result,
                   meaning ? meaning : "no description");
}

/* The library's table. False and `absence` when it cannot be used. */
static bool bind_driver(void) {
  static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
  const char *missing = NULL, *loaded = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    loaded = names[i];
    missing = NULL;
#define HIP_FUNCTION(result, name, params)                                                                   \
  *(void **)&hip.name = dlsym(library, #name);                                                               \
  if (!hip.name && !missing)                                                                                 \
    missing = #name;
#define HIP_OPTIONAL(result, name, params) *(void **)&hip.name = dlsym(library, #name);
#define HIP_UNDECLARED(result, name, params) *(void **)&hip.name = dlsym(library, #name);
#include "hip_driver.def"
    if (!missing)
      return true;
  }
  if (loaded)
    snprintf(absence, sizeof absence, "%s has no %s", loaded, missing);
  else
    snprintf(absence, sizeof absence, "libamdhip64.so.7, .6 and .5 cannot be loaded");
  return false;
}

static bool read_chip(struct device *device, int index) {
  union {
    unsigned char bytes[HIP_PROPERTIES_ROOM];
    long long alignment;
  } properties;
  memset(&properties, 0, sizeof properties);
  size_t at = HIP_PROPERTIES_R0600_ARCH;
  hipError_t result;
  if (hip.hipGetDevicePropertiesR0600) {
    result = hip.hipGetDevicePropertiesR0600(&properties, index);
  } else if (hip.hipGetDeviceProperties) {
    at = HIP_PROPERTIES_OLD_ARCH;
    result = hip.hipGetDeviceProperties(&properties, index);
  } else {
    return false;
  }
  const char *chip = (const char *)properties.bytes + at;
  snprintf(device->info.chip, sizeof device->info.chip, "%.*s", (int)sizeof device->info.chip - 1, chip);
  return result == hipSuccess && strncmp(chip, "gfx", 3) == 0;
}

static bool read_device(struct device *device, int index) {
  int warp = 0, processors = 0, pools = 0;
  size_t memory = 0;
  hipDevice_t ordinal;
  if (!read_chip(device, index) || hip.hipDeviceGet(&ordinal, index) ||
      hip.hipDeviceGetAttribute(&warp, hipDeviceAttributeWarpSize, index) ||
      hip.hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, index) ||
      hip.hipDeviceTotalMem(&memory, ordinal) ||
      hip.hipDeviceGetName(device->info.name, (int)sizeof device->info.name, ordinal))
    return false;
  if (hip.hipMallocAsync && hip.hipFreeAsync &&
      hip.hipDeviceGetAttribute(&pools, hipDeviceAttributeMemoryPoolsSupported, index) == 0)
    device->pools = pools != 0;
  strcpy(device->info.backend, "hip");
  device->info.memory_bytes = memory;
  device->info.warp_size = (uint32_t)warp;
  device->info.multiprocessors = (uint32_t)processors;
  return true;
}

static int initialize(void) {
  if (!bind_driver())
    return ABSENT;
  int found = 0;
  hipError_t result = hip.hipInit(0);
  if (result == hipSuccess)
    result = hip.hipGetDeviceCount(&found);
  if (result != hipSuccess) {
    const char *name = hip.hipGetErrorName(result);
    snprintf(absence, sizeof absence, "the HIP library answers %s (%d)", name ? name : "an unknown code",
             result);
    return ABSENT;
  }
  while (count < found && count < MGPU_MAX_DEVICES && read_device(&devices[count], count))
    ++count;
  if (count == 0)
    snprintf(absence, sizeof absence, "the HIP library reports no usable device");
  return count ? READY : ABSENT;
}

static int current_state(void) {
  int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (now != UNKNOWN)
    return now;
  mgpu_init_lock();
  if (state == UNKNOWN)
    __atomic_store_n(&state, initialize(), __ATOMIC_RELEASE);
  now = state;
  mgpu_init_unlock();
  return now;
}

static int device_count(void) { return current_state() == ABSENT ? 0 : count; }

static const char *why_absent(void) { return absence; }

static int device_info(int device, mgpuDeviceInfo *info) {
  *info = devices[device].info;
  return 0;
}

static void after_fork(void) {
  if (state == READY)
    state = FORKED;
}

/* Makes the device current; *previous is for leave(). */
static int enter(int device, int *previous) {
  if (current_state() == FORKED)
    return mgpu_fail(MGPU_ERROR_DRIVER,
                     "This process was forked after HIP had been used; HIP does not work in the "
                     "child. Start it with spawn, or fork before the first use.");
  hipError_t result = hip.hipGetDevice(previous);
  if (result == hipSuccess && *previous != device)
    result = hip.hipSetDevice(device);
  return result ? failed(result, "hipSetDevice") : 0;
}

static int leave(int device, int previous, hipError_t result, const char *call) {
  if (previous != device)
    hip.hipSetDevice(previous);
  return result ? failed(result, call) : 0;
}

/* One library call on the device. */
#define ON_DEVICE(device, call, arguments)                                                                   \
  do {                                                                                                       \
    int previous_;                                                                                           \
    int failure_ = enter(device, &previous_);                                                                \
    return failure_ ? failure_ : leave(device, previous_, hip.call arguments, #call);                        \
  } while (0)

/* Which chips run code for a generic target. */
static bool generic_covers(const char *generic, const char *chip) {
  static const struct {
    const char *generic, *chips;
  } table[] = {
      {"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
      {"gfx9-4-generic", " gfx940 gfx941 gfx942 gfx950 "},
      {"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
      {"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
      {"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
      {"gfx12-generic", " gfx1200 gfx1201 "},
  };
  char word[80];
  snprintf(word, sizeof word, " %s ", chip);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    if (strcmp(table[i].generic, generic) == 0)
      return strstr(table[i].chips, word) != NULL;
  return false;
}

/* Splits "gfx942:sramecc+:xnack-" at its first colon; *features is then "sramecc+:xnack-" or "". */
static void split(const char *from, char *chip, size_t size, const char **features) {
  size_t length = strcspn(from, ":");
  *features = from[length] ? from + length + 1 : "";
  snprintf(chip, size, "%.*s", (int)(length < size ? length : size - 1), from);
}

static bool has_feature(const char *features, const char *feature, size_t length) {
  for (; *features; features += features[0] == ':') {
    size_t next = strcspn(features, ":");
    if (next == length && memcmp(features, feature, length) == 0)
      return true;
    features += next;
  }
  return false;
}

/* The chip must be the same, or covered by a generic one. A feature that the image names (xnack+) must be
 * what the device has; one that it does not name may be anything. More features named is better. */
static int image_rank(int index, const struct mgpu_image *image) {
  enum mgpu_blob blob = mgpu_image_blob(image->data, image->size);
  if (blob != MGPU_BLOB_AMD_ELF && blob != MGPU_BLOB_AMD_BUNDLE)
    return 0;
  char wanted[64], present[64];
  const char *needs, *has;
  split(image->arch, wanted, sizeof wanted, &needs);
  split(devices[index].info.chip, present, sizeof present, &has);
  int rank = strcmp(wanted, present) == 0 ? 10 : generic_covers(wanted, present) ? 1 : 0;
  while (rank && *needs) {
    size_t length = strcspn(needs, ":");
    if (length && !has_feature(has, needs, length))
      return 0;
    needs += length + (needs[length] == ':');
    ++rank;
  }
  return rank;
}

static int module_load(int index, const void *data, size_t size, int jit_level, void **out) {
  (void)jit_level;
  enum mgpu_blob blob = mgpu_image_blob(data, size);
  if (blob != MGPU_BLOB_AMD_ELF && blob != MGPU_BLOB_AMD_BUNDLE)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "HIP loads code objects (hsaco), not text or other images.");
  struct module *module = calloc(1, sizeof *module);
  void *copy = NULL;
  if (!module || posix_memalign(&copy, 4096, size)) {
    free(module);
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module of %zu bytes.", size);
  }
  memcpy(copy, data, size);
  module->copy = copy;
  int previous;
  int failure = enter(index, &previous);
  if (!failure) {
    hipError_t result = hip.hipModuleLoadData(&module->handle, copy);
    leave(index, previous, hipSuccess, "");
    if (result == hipErrorInvalidImage || result == hipErrorNoBinaryForGpu ||
        result == hipErrorInvalidKernelFile)
      failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The HIP library cannot load the image on %s: %s (%d).",
                          devices[index].info.chip, hip.hipGetErrorName(result), result);
    else if (result)
      failure = failed(result, "hipModuleLoadData");
  }
  if (failure) {
    free(copy);
    free(module);
    return failure;
  }
  *out = module;
  return 0;
}

static int module_unload(int index, void *pointer) {
  struct module *module = pointer;
  int previous;
  int failure = enter(index, &previous);
  if (!failure) {
    hipError_t result = hip.hipModuleUnload(module->handle);
    if (result == hipErrorDeinitialized) /* the process is ending and the library went first */
      result = hipSuccess;
    failure = leave(index, previous, result, "hipModuleUnload");
  }
  for (struct kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
  free(module->copy);
  free(module);
  return failure;
}

static int kernel_get(int index, void *pointer, const char *name, void **out) {
  struct module *module = pointer;
  size_t length = strlen(name) + 1;
  struct kernel *kernel = calloc(1, sizeof *kernel + length);
  if (!kernel)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
  memcpy(kernel->name, name, length);
  int previous;
  int failure = enter(index, &previous);
  if (!failure) {
    char what[192];
    snprintf(what, sizeof what, "hipModuleGetFunction for the kernel \"%.128s\"", name);
    failure = leave(index, previous, hip.hipModuleGetFunction(&kernel->function, module->handle, name), what);
  }
  if (failure) {
    free(kernel);
    return failure;
  }
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out = kernel;
  return 0;
}

static int launch(int index, void *pointer, const struct mgpu_launch *launch) {
  struct kernel *kernel = pointer;
  if (launch->cluster[0])
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs clusters; HIP has none.", kernel->name);
  int previous;
  int failure = enter(index, &previous);
  if (failure)
    return failure;
  hipError_t result = hip.hipModuleLaunchKernel(
      kernel->function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->smem, launch->stream, launch->params, NULL);
  leave(index, previous, hipSuccess, "");
  if (!result)
    return 0;
  char what[320];
  snprintf(what, sizeof what,
           "The launch of the kernel \"%.128s\" with grid (%u, %u, %u) and block (%u, %u, %u)", kernel->name,
           launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
           launch->block[2]);
  return failed(result, what);
}

static int stream_create(int device, void **stream) {
  ON_DEVICE(device, hipStreamCreateWithFlags, ((hipStream_t *)stream, hipStreamNonBlocking));
}

static int stream_destroy(int device, void *stream) { ON_DEVICE(device, hipStreamDestroy, (stream)); }

static int stream_sync(int device, void *stream) { ON_DEVICE(device, hipStreamSynchronize, (stream)); }

static int stream_wait_event(int device, void *stream, void *event) {
  ON_DEVICE(device, hipStreamWaitEvent, (stream, event, 0));
}

static int event_create(int device, void **event) {
  ON_DEVICE(device, hipEventCreateWithFlags, ((hipEvent_t *)event, hipEventDisableTiming));
}

static int event_destroy(int device, void *event) { ON_DEVICE(device, hipEventDestroy, (event)); }

static int event_record(int device, void *event, void *stream) {
  ON_DEVICE(device, hipEventRecord, (event, stream));
}

static int event_sync(int device, void *event) { ON_DEVICE(device, hipEventSynchronize, (event)); }

static int alloc(int index, size_t size, void *stream, bool shared, void **out) {
  int previous;
  int failure = enter(index, &previous);
  if (failure)
    return failure;
  hipError_t result = shared                 ? hip.hipMallocManaged(out, size, hipMemAttachGlobal)
                      : devices[index].pools ? hip.hipMallocAsync(out, size, stream)
                                             : hip.hipMalloc(out, size);
  leave(index, previous, hipSuccess, "");
  if (!result)
    return 0;
  char what[96];
  snprintf(what, sizeof what, "The allocation of %zu bytes on hip:%d", size, index);
  return failed(result, what);
}

static int release(int device, void *memory, void *stream, bool shared) {
  if (devices[device].pools && !shared)
    ON_DEVICE(device, hipFreeAsync, (memory, stream));
  ON_DEVICE(device, hipFree, (memory));
}

static int copy(int device, void *to, const void *from, size_t size, void *stream) {
  ON_DEVICE(device, hipMemcpyAsync, (to, from, size, hipMemcpyDefault, stream));
}

static int copy_rows(int device, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, void *stream) {
  ON_DEVICE(device, hipMemcpy2DAsync,
            (to, to_pitch, from, from_pitch, width, height, hipMemcpyDefault, stream));
}

/* No 64-bit fill: writes the first element as two words and doubles what is there. */
static hipError_t fill_by_doubling(char *to, uint64_t value, size_t elements, hipStream_t stream) {
  hipError_t result = hip.hipMemsetD32Async(to, (int)(uint32_t)value, 1, stream);
  if (!result)
    result = hip.hipMemsetD32Async(to + 4, (int)(uint32_t)(value >> 32), 1, stream);
  for (size_t done = 1; !result && done < elements;) {
    size_t next = done < elements - done ? done : elements - done;
    result = hip.hipMemcpyAsync(to + 8 * done, to, 8 * next, hipMemcpyDefault, stream);
    done += next;
  }
  return result;
}

static int fill(int device, void *to, uint64_t value, unsigned width, size_t elements, void *stream) {
  uint32_t low = (uint32_t)value;
  if (width == 1)
    ON_DEVICE(device, hipMemsetD8Async, (to, (unsigned char)value, elements, stream));
  if (width == 2)
    ON_DEVICE(device, hipMemsetD16Async, (to, (unsigned short)value, elements, stream));
  if (width == 4)
    ON_DEVICE(device, hipMemsetD32Async, (to, (int)low, elements, stream));
  if (low == (uint32_t)(value >> 32))
    ON_DEVICE(device, hipMemsetD32Async, (to, (int)low, 2 * elements, stream));
  int previous;
  int failure = enter(device, &previous);
  return failure ? failure
                 : leave(device, previous, fill_by_doubling(to, value, elements, stream), "A 64-bit fill");
}

static int host_register(int device, void *memory, size_t size) {
  ON_DEVICE(device, hipHostRegister, (memory, size, 0));
}

static int host_unregister(int device, void *memory) { ON_DEVICE(device, hipHostUnregister, (memory)); }

const struct mgpu_backend mgpu_backend_hip = {
    .name = "hip",
    .target = "rocdl",
    .device_count = device_count,
    .why_absent = why_absent,
    .device_info = device_info,
    .image_rank = image_rank,
    .module_load = module_load,
    .module_unload = module_unload,
    .kernel_get = kernel_get,
    .launch = launch,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .stream_wait_event = stream_wait_event,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_sync = event_sync,
    .alloc = alloc,
    .free = release,
    .memcpy = copy,
    .memcpy2d = copy_rows,
    .memset = fill,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .after_fork = after_fork,
};
