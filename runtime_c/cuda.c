/* cuda.c: NVIDIA devices through the CUDA driver API, bound at first use.
 *
 * Work runs in each device's primary context, which the CUDA runtime and other libraries share. The caller's
 * current context is put back after every call. */
#include "cuda_driver.h"

#include "backend.h"
#include "error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, READY, ABSENT, FORKED };
/* What the driver may keep of freed pool memory instead of unmapping it at the next synchronization. */
static const unsigned long long POOL_KEEPS = 1ull << 30;

struct device {
  CUdevice ordinal;
  CUcontext context; /* atomic; retained at first use */
  int major, minor;
  bool pools;
  mgpuDeviceInfo info;
};

struct kernel {
  struct kernel *next;
  CUfunction function;
  int static_shared;
  int dynamic_shared; /* atomic: what the driver has been told to allow */
  int wide_clusters;  /* atomic */
  char name[];
};

struct module {
  CUmodule handle;
  struct kernel *kernels; /* under mgpu_lock */
};

static struct cuda_driver cuda;
static int state; /* atomic; the rest is written before it becomes READY or ABSENT */
static int count;
static struct device devices[MGPU_MAX_DEVICES];
static char absence[256];

static int failed(CUresult result, const char *call) {
  const char *name = NULL, *meaning = NULL;
  cuda.cuGetErrorName(result, &name);
  cuda.cuGetErrorString(result, &meaning);
  int code = result == CUDA_ERROR_OUT_OF_MEMORY ? MGPU_ERROR_MEMORY : MGPU_ERROR_DRIVER;
  return mgpu_fail(code, "%s failed with %s (%d): %s.", call, name ? name : "an unknown code", result,
                   meaning ? meaning : "no description");
}

/* The driver's table. False and `absence` when it cannot be used. */
static bool bind_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(absence, sizeof absence, "libcuda.so.1 cannot be loaded");
    return false;
  }
  const char *missing = NULL;
#define CUDA_FUNCTION(name, params)                                                                          \
  *(void **)&cuda.name = dlsym(library, #name);                                                              \
  if (!cuda.name && !missing)                                                                                \
    missing = #name;
#define CUDA_OPTIONAL(name, params) *(void **)&cuda.name = dlsym(library, #name);
#include "cuda_driver.def"
  if (!missing)
    return true;
  snprintf(absence, sizeof absence, "libcuda.so.1 has no %s; it is too old", missing);
  return false;
}

static bool read_device(struct device *device, int index) {
  int warp = 0, processors = 0, pools = 0;
  size_t memory = 0;
  if (cuda.cuDeviceGet(&device->ordinal, index) ||
      cuda.cuDeviceGetAttribute(&device->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                device->ordinal) ||
      cuda.cuDeviceGetAttribute(&device->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                device->ordinal) ||
      cuda.cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device->ordinal) ||
      cuda.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->ordinal) ||
      cuda.cuDeviceTotalMem_v2(&memory, device->ordinal) ||
      cuda.cuDeviceGetName(device->info.name, (int)sizeof device->info.name, device->ordinal))
    return false;
  if (cuda.cuMemAllocAsync && cuda.cuMemFreeAsync &&
      cuda.cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device->ordinal) == 0)
    device->pools = pools != 0;
  strcpy(device->info.backend, "cuda");
  snprintf(device->info.chip, sizeof device->info.chip, "sm_%d%d", device->major, device->minor);
  device->info.memory_bytes = memory;
  device->info.warp_size = (uint32_t)warp;
  device->info.multiprocessors = (uint32_t)processors;
  return true;
}

static int initialize(void) {
  if (!bind_driver())
    return ABSENT;
  const char *name = NULL;
  int found = 0;
  CUresult result = cuda.cuInit(0);
  if (result == CUDA_SUCCESS)
    result = cuda.cuDeviceGetCount(&found);
  if (result != CUDA_SUCCESS) {
    cuda.cuGetErrorName(result, &name);
    snprintf(absence, sizeof absence, "the CUDA driver answers %s (%d)", name ? name : "an unknown code",
             result);
    return ABSENT;
  }
  while (count < found && count < MGPU_MAX_DEVICES && read_device(&devices[count], count))
    ++count;
  if (count == 0)
    snprintf(absence, sizeof absence, "the CUDA driver reports no usable device");
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

static void keep_pool_memory(const struct device *device) {
  CUmemoryPool pool;
  unsigned long long keeps = 0;
  if (device->pools && cuda.cuDeviceGetDefaultMemPool && cuda.cuMemPoolGetAttribute &&
      cuda.cuMemPoolSetAttribute && cuda.cuDeviceGetDefaultMemPool(&pool, device->ordinal) == 0 &&
      cuda.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keeps) == 0 && keeps == 0) {
    keeps = POOL_KEEPS;
    cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keeps);
  }
}

/* Makes the device's context current; *previous is for leave(). */
static int enter(int index, CUcontext *previous) {
  struct device *device = &devices[index];
  if (current_state() == FORKED)
    return mgpu_fail(MGPU_ERROR_DRIVER,
                     "This process was forked after CUDA had been used; CUDA does not work in the "
                     "child. Start it with spawn, or fork before the first use.");
  CUcontext context = __atomic_load_n(&device->context, __ATOMIC_ACQUIRE);
  if (!context) {
    CUresult result = CUDA_SUCCESS;
    mgpu_init_lock();
    if (!device->context) {
      result = cuda.cuDevicePrimaryCtxRetain(&context, device->ordinal);
      if (result == CUDA_SUCCESS) {
        keep_pool_memory(device);
        __atomic_store_n(&device->context, context, __ATOMIC_RELEASE);
      }
    }
    context = device->context;
    mgpu_init_unlock();
    if (result)
      return failed(result, "cuDevicePrimaryCtxRetain");
  }
  CUresult result = cuda.cuCtxGetCurrent(previous);
  if (result == CUDA_SUCCESS && *previous != context)
    result = cuda.cuCtxSetCurrent(context);
  return result ? failed(result, "cuCtxSetCurrent") : 0;
}

static int leave(int index, CUcontext previous, CUresult result, const char *call) {
  if (previous != devices[index].context)
    cuda.cuCtxSetCurrent(previous);
  return result ? failed(result, call) : 0;
}

/* One driver call in the device's context. */
#define IN_CONTEXT(device, call, arguments)                                                                  \
  do {                                                                                                       \
    CUcontext previous_;                                                                                     \
    int failure_ = enter(device, &previous_);                                                                \
    return failure_ ? failure_ : leave(device, previous_, cuda.call arguments, #call);                       \
  } while (0)

/* "sm_90a" -> major 9, minor 0, variant 'a' (0: none). */
static bool read_chip(const char *chip, int *major, int *minor, char *variant) {
  int number = 0, digits = 0;
  if (strncmp(chip, "sm_", 3) != 0)
    return false;
  for (chip += 3; *chip >= '0' && *chip <= '9' && digits < 4; ++chip, ++digits)
    number = 10 * number + (*chip - '0');
  *variant = *chip;
  *major = number / 10;
  *minor = number % 10;
  return digits >= 2 && (*chip == 0 || ((*chip == 'a' || *chip == 'f') && chip[1] == 0));
}

/* Machine code beats text. Machine code runs on its own major version from its minor version on; code of
 * variant f in its family, that is the same; code of variant a on its own chip only. Text without a variant
 * runs from its version on. */
static int image_rank(int index, const struct mgpu_image *image) {
  const struct device *device = &devices[index];
  enum mgpu_blob blob = mgpu_image_blob(image->data, image->size);
  int major, minor;
  char variant;
  bool code = blob == MGPU_BLOB_CUDA_ELF || blob == MGPU_BLOB_CUDA_FAT;
  bool text = blob == MGPU_BLOB_TEXT || blob == MGPU_BLOB_CUDA_FAT;
  if ((!code && !text) || !read_chip(image->arch, &major, &minor, &variant))
    return 0;
  bool family = major == device->major && minor <= device->minor;
  bool same = family && minor == device->minor;
  bool runs = variant == 'a' ? same : family;
  int detail = 10 * minor + (variant == 'a' ? 4 : variant == 'f' ? 2 : 0);
  if (code && runs)
    return 100000 + detail + (blob == MGPU_BLOB_CUDA_ELF);
  bool later = major < device->major || family;
  if (text && (variant ? runs : later))
    return 100 * major + detail + 1;
  return 0;
}

static int module_load(int index, const void *data, size_t size, int jit_level, void **out) {
  bool text = mgpu_image_blob(data, size) == MGPU_BLOB_TEXT;
  char log[640] = "";
  char *copy = NULL;
  struct module *module = calloc(1, sizeof *module);
  if (text || (uintptr_t)data % 8) { /* text needs a terminator, code alignment */
    copy = malloc(size + 1);
    if (copy) {
      memcpy(copy, data, size);
      copy[size] = 0;
    }
  }
  if (!module || ((text || (uintptr_t)data % 8) && !copy)) {
    free(module);
    free(copy);
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module of %zu bytes.", size);
  }
  CUjit_option options[3] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                             CU_JIT_OPTIMIZATION_LEVEL};
  void *values[3] = {log, (void *)(uintptr_t)(sizeof log - 1),
                     (void *)(uintptr_t)(jit_level < 0 ? 4 : jit_level)};
  CUcontext previous;
  int failure = enter(index, &previous);
  if (!failure) {
    CUresult result = cuda.cuModuleLoadDataEx(&module->handle, copy ? copy : data, text ? 3 : 0,
                                              text ? options : NULL, text ? values : NULL);
    leave(index, previous, CUDA_SUCCESS, "");
    if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
        result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
        (result && *log)) {
      const char *name = NULL;
      cuda.cuGetErrorName(result, &name);
      failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The CUDA driver cannot load the image on %s: %s (%d)%s%s.",
                          devices[index].info.chip, name ? name : "unknown", result, *log ? ": " : "", log);
    } else if (result) {
      failure = failed(result, "cuModuleLoadDataEx");
    }
  }
  free(copy);
  if (failure) {
    free(module);
    return failure;
  }
  *out = module;
  return 0;
}

static int module_unload(int index, void *pointer) {
  struct module *module = pointer;
  CUcontext previous;
  int failure = enter(index, &previous);
  if (!failure) {
    CUresult result = cuda.cuModuleUnload(module->handle);
    if (result == CUDA_ERROR_DEINITIALIZED) /* the process is ending and the driver went first */
      result = CUDA_SUCCESS;
    failure = leave(index, previous, result, "cuModuleUnload");
  }
  for (struct kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
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
  CUcontext previous;
  int failure = enter(index, &previous);
  if (!failure) {
    const char *call = "cuModuleGetFunction";
    CUresult result = cuda.cuModuleGetFunction(&kernel->function, module->handle, name);
    if (result == CUDA_SUCCESS) {
      call = "cuFuncGetAttribute";
      result = cuda.cuFuncGetAttribute(&kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                       kernel->function);
    }
    char what[192];
    snprintf(what, sizeof what, "%s for the kernel \"%.128s\"", call, name);
    failure = leave(index, previous, result, what);
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

/* More than 48 KiB of workgroup memory must be asked for. */
static int allow_shared(int index, struct kernel *kernel, int bytes) {
  enum { WITHOUT_ASKING = 48 * 1024 };
  if (bytes <= WITHOUT_ASKING - kernel->static_shared ||
      bytes <= __atomic_load_n(&kernel->dynamic_shared, __ATOMIC_RELAXED))
    return 0;
  CUresult result =
      cuda.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
  if (result) {
    int most = 0;
    cuda.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                              devices[index].ordinal);
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" needs %d bytes of workgroup memory (%d static, %d dynamic); %s allows %d.",
        kernel->name, kernel->static_shared + bytes, kernel->static_shared, bytes, devices[index].info.chip,
        most);
  }
  __atomic_store_n(&kernel->dynamic_shared, bytes, __ATOMIC_RELAXED);
  return 0;
}

static CUresult launch_clusters(struct kernel *kernel, const struct mgpu_launch *launch) {
  enum { PORTABLE_CLUSTER = 8 };
  const uint32_t *cluster = launch->cluster;
  if ((uint64_t)cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER &&
      !__atomic_load_n(&kernel->wide_clusters, __ATOMIC_RELAXED)) {
    CUresult result =
        cuda.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result)
      return result;
    __atomic_store_n(&kernel->wide_clusters, 1, __ATOMIC_RELAXED);
  }
  CUlaunchAttribute attributes[2];
  memset(attributes, 0, sizeof attributes);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = cluster[0];
  attributes[0].value.clusterDim.y = cluster[1];
  attributes[0].value.clusterDim.z = cluster[2];
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  attributes[1].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  CUlaunchConfig config = {
      launch->grid[0],  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->smem,    launch->stream,  attributes,       2};
  return cuda.cuLaunchKernelEx(&config, kernel->function, launch->params, NULL);
}

static int launch(int index, void *pointer, const struct mgpu_launch *launch) {
  struct kernel *kernel = pointer;
  bool clusters = launch->cluster[0] != 0;
  if (clusters && !cuda.cuLaunchKernelEx)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs clusters; this CUDA driver has none.",
                     kernel->name);
  CUcontext previous;
  int failure = enter(index, &previous);
  if (failure)
    return failure;
  failure = allow_shared(index, kernel, (int)launch->smem);
  if (failure) {
    leave(index, previous, CUDA_SUCCESS, "");
    return failure;
  }
  CUresult result =
      clusters ? launch_clusters(kernel, launch)
               : cuda.cuLaunchKernel(kernel->function, launch->grid[0], launch->grid[1], launch->grid[2],
                                     launch->block[0], launch->block[1], launch->block[2], launch->smem,
                                     launch->stream, launch->params, NULL);
  leave(index, previous, CUDA_SUCCESS, "");
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
  IN_CONTEXT(device, cuStreamCreate, ((CUstream *)stream, CU_STREAM_NON_BLOCKING));
}

static int stream_destroy(int device, void *stream) { IN_CONTEXT(device, cuStreamDestroy_v2, (stream)); }

static int stream_sync(int device, void *stream) { IN_CONTEXT(device, cuStreamSynchronize, (stream)); }

static int stream_wait_event(int device, void *stream, void *event) {
  IN_CONTEXT(device, cuStreamWaitEvent, (stream, event, 0));
}

static int event_create(int device, void **event) {
  IN_CONTEXT(device, cuEventCreate, ((CUevent *)event, CU_EVENT_DISABLE_TIMING));
}

static int event_destroy(int device, void *event) { IN_CONTEXT(device, cuEventDestroy_v2, (event)); }

static int event_record(int device, void *event, void *stream) {
  IN_CONTEXT(device, cuEventRecord, (event, stream));
}

static int event_sync(int device, void *event) { IN_CONTEXT(device, cuEventSynchronize, (event)); }

static CUdeviceptr address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

static int alloc(int index, size_t size, void *stream, bool shared, void **out) {
  CUcontext previous;
  int failure = enter(index, &previous);
  if (failure)
    return failure;
  CUdeviceptr memory = 0;
  CUresult result = shared                 ? cuda.cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL)
                    : devices[index].pools ? cuda.cuMemAllocAsync(&memory, size, stream)
                                           : cuda.cuMemAlloc_v2(&memory, size);
  leave(index, previous, CUDA_SUCCESS, "");
  if (result) {
    char what[96];
    snprintf(what, sizeof what, "The allocation of %zu bytes on cuda:%d", size, index);
    return failed(result, what);
  }
  *out = (void *)(uintptr_t)memory;
  return 0;
}

static int release(int device, void *memory, void *stream, bool shared) {
  if (devices[device].pools && !shared)
    IN_CONTEXT(device, cuMemFreeAsync, (address(memory), stream));
  IN_CONTEXT(device, cuMemFree_v2, (address(memory)));
}

static int copy(int device, void *to, const void *from, size_t size, void *stream) {
  IN_CONTEXT(device, cuMemcpyAsync, (address(to), address(from), size, stream));
}

static int copy_rows(int device, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, void *stream) {
  CUDA_MEMCPY2D rows = {
      .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
      .srcDevice = address(from),
      .srcPitch = from_pitch,
      .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
      .dstDevice = address(to),
      .dstPitch = to_pitch,
      .WidthInBytes = width,
      .Height = height,
  };
  IN_CONTEXT(device, cuMemcpy2DAsync_v2, (&rows, stream));
}

static int fill(int device, void *to, uint64_t value, unsigned width, size_t elements, void *stream) {
  uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
  if (width == 1)
    IN_CONTEXT(device, cuMemsetD8Async, (address(to), (unsigned char)value, elements, stream));
  if (width == 2)
    IN_CONTEXT(device, cuMemsetD16Async, (address(to), (unsigned short)value, elements, stream));
  if (width == 4)
    IN_CONTEXT(device, cuMemsetD32Async, (address(to), low, elements, stream));
  if (low == high)
    IN_CONTEXT(device, cuMemsetD32Async, (address(to), low, 2 * elements, stream));
  CUcontext previous; /* no 64-bit fill: the halves are two columns of a matrix that is two words wide */
  int failure = enter(device, &previous);
  if (failure)
    return failure;
  CUresult result = cuda.cuMemsetD2D32Async(address(to), 8, low, 1, elements, stream);
  if (!result)
    result = cuda.cuMemsetD2D32Async(address(to) + 4, 8, high, 1, elements, stream);
  return leave(device, previous, result, "cuMemsetD2D32Async");
}

static int host_register(int device, void *memory, size_t size) {
  IN_CONTEXT(device, cuMemHostRegister_v2, (memory, size, 0));
}

static int host_unregister(int device, void *memory) { IN_CONTEXT(device, cuMemHostUnregister, (memory)); }

static int describe(int device, const struct mgpu_tensor *tensor, struct mgpu_descriptor *out) {
  CUtensorMap map;
  if (!cuda.cuTensorMapEncodeTiled)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "This CUDA driver has no tensor descriptors: they came with CUDA 12.0.");
  CUcontext previous;
  int failure = enter(device, &previous);
  if (failure)
    return failure;
  CUresult result = cuda.cuTensorMapEncodeTiled(
      &map, tensor->type, tensor->rank, tensor->address, tensor->sizes, tensor->distances, tensor->box,
      tensor->steps, tensor->interleave, tensor->swizzle, tensor->l2_promotion, tensor->oob_fill);
  failure = leave(device, previous, result, "cuTensorMapEncodeTiled");
  if (!failure)
    memcpy(out, &map, sizeof map);
  return failure;
}

const struct mgpu_backend mgpu_backend_cuda = {
    .name = "cuda",
    .target = "nvvm",
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
    .describe = describe,
    .after_fork = after_fork,
};
