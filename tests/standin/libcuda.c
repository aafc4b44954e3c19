/* libcuda.c: a stand-in for libcuda.so.1 over host memory: two sm_90 devices, no kernels, a log. It refuses
 * calls without the right current context, as the real one does. An emulator may run kernels. */
#include "cuda/driver.h"
#include "standin.h"

#include "emulation.h"

enum {
  NO_DEVICE = 100,
  INVALID_VALUE = 1,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  NOT_REGISTERED = 713,
  INVALID_CLUSTER_SIZE = 912,
  PLAIN = 1,
  POOL = 2,
  MANAGED = 3,
  TOTAL_MEMORY = 1 << 30,
  /* Bytes of workgroup memory: what blocks have without asking, and what every kernel has of its own. */
  USUAL_SHARED = 48 * 1024,
  STATIC_SHARED = 1024
};

static char contexts[64];
static _Thread_local CUcontext current;

/* The device of the current context, or -1. */
static int here(void) {
  size_t index = (size_t)((char *)current - contexts);
  return current && index < sizeof contexts ? (int)index : -1;
}

#define NEED_CONTEXT NEED(here() >= 0, INVALID_CONTEXT)
#define NEED_DEVICE_OF(thing)                                                                                \
  NEED(here() >= 0 && ((const struct object *)(thing))->device == here(), INVALID_CONTEXT)

#include "cuda_descriptors.h"

EXPORT CUresult cuInit(unsigned int flags) {
  TURN;
  (void)flags;
  NEED(true, 0);
  fork_if_asked();
  return devices_present() ? CUDA_SUCCESS : NO_DEVICE;
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == NO_DEVICE                    ? "CUDA_ERROR_NO_DEVICE"
          : result == NOT_FOUND                  ? "CUDA_ERROR_NOT_FOUND"
          : result == CUDA_ERROR_INVALID_PTX     ? "CUDA_ERROR_INVALID_PTX"
          : result == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == INVALID_CLUSTER_SIZE       ? "CUDA_ERROR_INVALID_CLUSTER_SIZE"
          : result == INVALID_CONTEXT            ? "CUDA_ERROR_INVALID_CONTEXT"
          : result == CUDA_ERROR_DEINITIALIZED   ? "CUDA_ERROR_DEINITIALIZED"
          : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == CUDA_ERROR_ASSERT          ? "CUDA_ERROR_ASSERT"
          : result == CUDA_ERROR_LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
                                                 : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult result, const char **string) {
  (void)result;
  *string = "stand-in";
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *out) {
  TURN;
  *out = devices_present();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int index) {
  TURN;
  *device = index;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  TURN;
  snprintf(name, (size_t)size, "Stand-in %d", device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  TURN;
  (void)device;
  *bytes = TOTAL_MEMORY;
  return CUDA_SUCCESS;
}

/* Ten times what NVIDIA calls the compute capability. */
static int capability(void) { return emulated_chip() ? atoi(emulated_chip() + strlen("sm_")) : 90; }

/* Bytes of workgroup memory that blocks can have: "Technical Specifications per Compute Capability" in
 * NVIDIA's CUDA C++ Programming Guide. */
static int most_shared(void) {
  int chip = capability(), kilobytes = chip == 75                                ? 64
                                       : chip == 80 || chip == 87                ? 163
                                       : chip == 86 || chip == 89 || chip >= 120 ? 99
                                                                                 : 227;
  return kilobytes * 1024;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  TURN;
  (void)device;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? capability() / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? capability() % 10
           : attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE                ? 32
           : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED   ? getenv("STANDIN_NO_POOLS") == NULL
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? most_shared()
                                                                                : 132;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  TURN;
  note("retain %d", device);
  *context = (CUcontext)(void *)&contexts[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  TURN;
  *context = current;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  TURN;
  current = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  TURN;
  NEED_CONTEXT;
  *device = here();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count_,
                                   CUjit_option *options, void **values) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_CONTEXT;
  note("load %.40s on %d with %u options", tag(image), here(), count_);
  for (unsigned int i = 0; i < count_; ++i)
    if (options[i] == CU_JIT_OPTIMIZATION_LEVEL)
      note("level %u", (unsigned)(size_t)values[i]);
  keep_image(image);
  if (strstr(tag(image), "broken")) {
    for (unsigned int i = 0; i < count_; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
        strcpy(values[i], "ptxas: syntax error in line 7");
    return CUDA_ERROR_INVALID_PTX;
  }
  *module = make(MODULES, here());
  return emulator ? emulator->load(*module, image) : CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  TURN;
  NEED_DEVICE_OF(module);
  if (emulator)
    emulator->unload(module);
  destroy(MODULES, module);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_DEVICE_OF(module);
  if (strcmp(name, "missing") == 0)
    return NOT_FOUND;
  note("get %s", name);
  if (emulator)
    return emulated_function(module, name, here(), (void **)function) ? NOT_FOUND : CUDA_SUCCESS;
  *function = (CUfunction)(void *)function_of(name, here());
  return CUDA_SUCCESS;
}

/* Bytes of workgroup memory that the kernel has of its own. */
static int static_shared(const void *function) {
  const struct emulated_function *kernel = function;
  return emulator ? emulator->shared(kernel->module, kernel->object.name) : STATIC_SHARED;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_DEVICE_OF(function);
  *value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? static_shared(function) : 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  TURN;
  struct object *kernel = (void *)function;
  NEED_DEVICE_OF(kernel);
  note("set attribute %d to %d", attribute, value);
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    kernel->wide = value != 0;
  } else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value > most_shared() - static_shared(kernel))
      return INVALID_VALUE;
    __atomic_store_n(&kernel->dynamic, value, __ATOMIC_RELAXED);
  }
  return CUDA_SUCCESS;
}

/* Whether a launch of the kernel may have so much dynamic memory: the last that was said counts. */
static bool allowed(const struct object *kernel, unsigned smem) {
  int dynamic = __atomic_load_n(&kernel->dynamic, __ATOMIC_RELAXED);
  return smem <= (unsigned)(dynamic ? dynamic : USUAL_SHARED - static_shared(kernel));
}

/* Its number in the log; a default stream's is its handle, negative. */
static int stream_number(CUstream stream) {
  return (size_t)stream > 2 ? number(stream) : -(int)(size_t)stream;
}

static CUresult start(CUfunction function, const unsigned *grid, const unsigned *block, unsigned smem,
                      CUstream stream, const unsigned *cluster, void **params) {
  const struct object *kernel = (void *)function;
  NEED_DEVICE_OF(kernel);
  if ((size_t)stream > 2)
    NEED_DEVICE_OF(stream);
  enum { THREADS = 1024, THREADS_Z = 64, BLOCKS_YZ = 65535 };
  if (block[0] * block[1] * block[2] > THREADS || block[2] > THREADS_Z || grid[1] > BLOCKS_YZ ||
      grid[2] > BLOCKS_YZ || !allowed(kernel, smem))
    return INVALID_VALUE;
  note("launch %s grid %u %u %u block %u %u %u cluster %u smem %u stream %d arg %d", kernel->name, grid[0],
       grid[1], grid[2], block[0], block[1], block[2], cluster ? cluster[0] : 0, smem, stream_number(stream),
       params && !emulator ? *(int *)params[0] : -1);
  if (getenv("STANDIN_DESCRIPTOR"))
    note_descriptor(*(const struct tensor_map **)params[atoi(getenv("STANDIN_DESCRIPTOR"))]);
  note_parameters(params);
  if (taken_by_graph(stream))
    return CUDA_SUCCESS;
  if (emulator)
    return emulated_launch(kernel, grid, block, cluster ? cluster : (unsigned[]){1, 1, 1}, smem, params);
  run_kernel(kernel->name, grid, block, smem, params);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                               unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem,
                               CUstream stream, void **params, void **extra) {
  TURN;
  (void)extra;
  return start(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, smem, stream, NULL, params);
}

#ifndef STANDIN_OLD
EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  TURN;
  *status = capturing(stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}
#endif

#ifndef STANDIN_OLD /* a driver without these */
EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                 CUoccupancyB2DSize size_of, size_t smem, int limit) {
  TURN;
  NEED_DEVICE_OF(function);
  *block = smem ? 256 : 768;
  *grid = 132;
  return size_of || limit ? INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                            size_t smem) {
  TURN;
  NEED_DEVICE_OF(function);
  int by_threads = threads > 1024 ? 0 : 2048 / threads, shared = static_shared(function) + (int)smem,
      by_memory = shared ? most_shared() / shared : by_threads;
  *blocks = by_memory < by_threads ? by_memory : by_threads;
  return CUDA_SUCCESS;
}
#endif

/* What the attributes of a launch say. */
static CUresult read_attributes(const CUlaunchConfig *config, unsigned cluster[3], int *policy,
                                int *cooperative) {
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttributeValue *value = &config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      memcpy(cluster, &value->clusterDim, 3 * sizeof *cluster);
    else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
      *policy = value->clusterSchedulingPolicyPreference;
    else if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      *cooperative = value->cooperative;
    else
      return INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* Clusters divide the grid and have at most 8 blocks, 16 where the kernel has been told so. */
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                                 void **extra) {
  TURN;
  enum { PORTABLE = 8, MOST = 16 };
  (void)extra;
  const struct object *kernel = (const void *)function;
  unsigned cluster[3] = {1, 1, 1};
  const unsigned *grid = &config->gridDimX;
  int policy = 0, cooperative = 0;
  NEED_DEVICE_OF(kernel);
  if (read_attributes(config, cluster, &policy, &cooperative))
    return INVALID_VALUE;
  unsigned blocks = cluster[0] * cluster[1] * cluster[2];
  if (!blocks || blocks > (kernel->wide ? MOST : PORTABLE))
    return INVALID_CLUSTER_SIZE;
  for (int i = 0; i < 3; ++i)
    if (grid[i] % cluster[i])
      return INVALID_VALUE;
  if (cooperative)
    note("cooperative");
  if (policy)
    note("clusters of %u %u %u, policy %d", cluster[0], cluster[1], cluster[2], policy);
  return start(function, grid, &config->blockDimX, config->sharedMemBytes, config->hStream, cluster, params);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING)
    return INVALID_VALUE;
  *stream = make(STREAMS, here());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  TURN;
  NEED_DEVICE_OF(stream);
  destroy(STREAMS, stream);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  TURN;
  NEED_CONTEXT;
  /* Every device has the default streams. */
  int device = (size_t)stream > 2 ? ((const struct object *)(void *)stream)->device : here();
  *context = (CUcontext)(void *)&contexts[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  TURN;
  NOT_IN_CAPTURE;
  if (capturing(stream))
    return CAPTURE_UNSUPPORTED;
  NEED_CONTEXT;
  if ((size_t)stream > 2)
    note("sync S%d", number(stream));
  else
    note("sync S%d on %d", stream_number(stream), here());
  waited();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  TURN;
  if (capturing(stream))
    return CAPTURE_ISOLATION; /* no event is from inside */
  (void)flags;
  NEED_CONTEXT;
  if ((size_t)stream > 2)
    note("wait S%d E%d", number(stream), number(event));
  else
    note("wait S%d E%d on %d", stream_number(stream), number(event), here());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  TURN;
  NEED_CONTEXT;
  bool timed = flags != CU_EVENT_DISABLE_TIMING;
  struct object *made_ = make(timed ? MARKS : EVENTS, here());
  made_->timed = timed;
  *event = (CUevent)(void *)made_;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  TURN;
  NEED_DEVICE_OF(event);
  destroy(((const struct object *)event)->timed ? MARKS : EVENTS, event);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  TURN;
  if (capturing(stream))
    return isolated((const struct object *)(const void *)event);
  NEED_DEVICE_OF(event);
  if (!((const struct object *)event)->timed && stream_number(stream) > 0)
    note("record E%d S%d", number(event), stream_number(stream));
  else if (!((const struct object *)event)->timed)
    note("record E%d S%d on %d", number(event), stream_number(stream), here());
  record(event);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_CONTEXT;
  if (!((const struct object *)event)->timed)
    note("sync E%d", number(event));
  waited();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_DEVICE_OF(to);
  return elapsed(milliseconds, from, to);
}

static CUresult give(CUdeviceptr *out, size_t size, size_t way) {
  NEED_CONTEXT;
  if (!size)
    return INVALID_VALUE;
  if (emulator && size > TOTAL_MEMORY)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = emulated_memory(memory_make(size, way), size);
  *out = (CUdeviceptr)(size_t)memory;
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take(CUdeviceptr memory, size_t way, size_t other) {
  NEED_CONTEXT;
  void *pointer = emulated_memory((void *)(size_t)memory, 0);
  return memory_free(pointer, way) && memory_free(pointer, other) ? INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  TURN;
  NOT_IN_CAPTURE;
  return give(out, size, PLAIN);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  return flags == CU_MEM_ATTACH_GLOBAL ? give(out, size, MANAGED) : INVALID_VALUE;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
  TURN;
  NEED_DEVICE_OF(stream);
  return give(out, size, POOL);
}

static uint64_t pool_keeps[8];

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  TURN;
  *pool = (CUmemoryPool)(void *)&pool_keeps[device % 8];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  TURN;
  NOT_IN_CAPTURE;
  memcpy(value, pool, sizeof(uint64_t));
  return attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? CUDA_SUCCESS : INVALID_VALUE;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  TURN;
  NOT_IN_CAPTURE;
  memcpy((void *)pool, value, sizeof(uint64_t));
  note("pool keeps %llu", *(unsigned long long *)value);
  return attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? CUDA_SUCCESS : INVALID_VALUE;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr memory) {
  TURN;
  NOT_IN_CAPTURE;
  return take(memory, PLAIN, MANAGED);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  TURN;
  NEED_DEVICE_OF(stream);
  return take(memory, POOL, POOL);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  TURN;
  (void)stream;
  NEED_CONTEXT;
  memcpy((void *)(size_t)to, (const void *)(size_t)from, size);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rows, CUstream stream) {
  TURN;
  (void)stream;
  NEED_CONTEXT;
  if (rows->srcMemoryType != CU_MEMORYTYPE_UNIFIED || rows->dstMemoryType != CU_MEMORYTYPE_UNIFIED ||
      rows->srcPitch < rows->WidthInBytes || rows->dstPitch < rows->WidthInBytes)
    return INVALID_VALUE;
  for (size_t row = 0; row < rows->Height; ++row)
    memcpy((void *)(size_t)(rows->dstDevice + row * rows->dstPitch),
           (const void *)(size_t)(rows->srcDevice + row * rows->srcPitch), rows->WidthInBytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count_, CUstream stream) {
  TURN;
  (void)stream;
  NEED_CONTEXT;
  memset((void *)(size_t)to, value, count_);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count_, CUstream stream) {
  TURN;
  (void)stream;
  NEED_CONTEXT;
  for (size_t i = 0; i < count_; ++i)
    ((unsigned short *)(size_t)to)[i] = value;
  return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  NEED_CONTEXT;
  for (size_t row = 0; row < height; ++row)
    for (size_t i = 0; i < width; ++i)
      ((unsigned int *)((size_t)to + row * pitch))[i] = value;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                                   size_t height, CUstream stream) {
  TURN;
  (void)stream;
  return fill(to, pitch, value, width, height);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count_, CUstream stream) {
  TURN;
  (void)stream;
  return fill(to, 0, value, count_, 1);
}

EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_CONTEXT;
  /* Without these no other device may use it, and nobody may ask for its address. */
  if (flags != (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
    return INVALID_VALUE;
  register_range(memory, size, here());
  emulated_memory(memory, size);
  note("register %zu", size);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *memory, unsigned int flags) {
  TURN;
  (void)flags;
  NEED_CONTEXT;
  if (!is_registered(memory))
    return INVALID_VALUE;
  *out = (CUdeviceptr)(uintptr_t)memory;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *memory) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_CONTEXT;
  emulated_memory(memory, 0);
  note("unregister");
  return unregister_range(memory, here()) ? CUDA_SUCCESS : NOT_REGISTERED;
}
