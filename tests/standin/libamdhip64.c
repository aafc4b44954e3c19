/* libamdhip64.c: a stand-in for libamdhip64.so.6 over host memory: two gfx942 devices, no kernels, a log. An
 * emulator may run kernels. */
#include "hip/driver.h"
#include "hip/layout.h"
#include "standin.h"

#include "emulation.h"

enum { NO_DEVICE = 100, INVALID_VALUE = 1, NOT_FOUND = 500, NOT_REGISTERED = 713, PLAIN = 1, POOL = 2 };

static _Thread_local int current;

static _Thread_local hipError_t last; /* failure, until somebody asks */

static hipError_t kept(hipError_t result) {
  last = result ? result : last;
  return result;
}

#undef TURN
#define TURN                                                                                                 \
  if (kept(turn(__func__)))                                                                                  \
  return last

static hipError_t need(bool fine) {
  NEED(fine, INVALID_VALUE);
  return hipSuccess;
}

#define NEED_DEVICE_OF(thing)                                                                                \
  if (kept(need(((const struct object *)(thing))->device == current)))                                       \
  return last

/* NULL and hipStreamPerThread, which are every device's. */
static bool is_default(const void *stream) { return !stream || (uintptr_t)stream == 2; }

static int stream_number(const void *stream) {
  return is_default(stream) ? -(int)(uintptr_t)stream : number(stream);
}

#define NEED_DEVICE_OF_STREAM(stream)                                                                        \
  if (!is_default(stream) && kept(need(((const struct object *)(void *)(stream))->device == current)))       \
  return last

EXPORT hipError_t hipInit(unsigned int flags) {
  TURN;
  (void)flags;
  NEED(true, 0);
  return devices_present() ? hipSuccess : NO_DEVICE;
}

EXPORT const char *hipGetErrorName(hipError_t result) {
  return result == NO_DEVICE                ? "hipErrorNoDevice"
         : result == NOT_FOUND              ? "hipErrorNotFound"
         : result == hipErrorInvalidImage   ? "hipErrorInvalidImage"
         : result == hipErrorIllegalAddress ? "hipErrorIllegalAddress"
         : result == hipErrorOutOfMemory    ? "hipErrorOutOfMemory"
                                            : "hipErrorInvalidValue";
}

EXPORT const char *hipGetErrorString(hipError_t result) {
  (void)result;
  return "stand-in";
}

EXPORT hipError_t hipGetLastError(void) {
  hipError_t result = last;
  last = hipSuccess;
  return result;
}

EXPORT hipError_t hipGetDeviceCount(int *out) {
  TURN;
  *out = devices_present();
  return devices_present() ? hipSuccess : NO_DEVICE;
}

EXPORT hipError_t hipGetDevice(int *out) {
  TURN;
  *out = current;
  return hipSuccess;
}

EXPORT hipError_t hipSetDevice(int device) {
  TURN;
  current = device;
  return hipSuccess;
}

EXPORT hipError_t hipDeviceGet(hipDevice_t *out, int index) {
  TURN;
  *out = index;
  return hipSuccess;
}

EXPORT hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device) {
  TURN;
  snprintf(name, (size_t)size, "Stand-in %d", device);
  return hipSuccess;
}

EXPORT hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  TURN;
  (void)device;
  *bytes = 1 << 30;
  return hipSuccess;
}

EXPORT hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  TURN;
  (void)device;
  *value = attribute == hipDeviceAttributeWarpSize               ? emulator ? emulator->lanes : 64
           : attribute == hipDeviceAttributeMemoryPoolsSupported ? getenv("STANDIN_NO_POOLS") == NULL
                                                                 : 304;
  return hipSuccess;
}

EXPORT hipError_t hipGetDevicePropertiesR0600(void *properties, int device) {
  TURN;
  (void)device;
  memset(properties, 0, HIP_PROPERTIES_R0600_SIZE);
  strcpy((char *)properties + HIP_PROPERTIES_R0600_ARCH,
         emulated_chip() ? emulated_chip() : "gfx942:sramecc+:xnack-");
  return hipSuccess;
}

EXPORT hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  TURN;
  NOT_IN_CAPTURE;
  note("load %.40s on %d", tag(image), current);
  keep_image(image);
  if (strstr(tag(image), "broken"))
    return kept(hipErrorInvalidImage);
  *module = make(MODULES, current);
  return emulator ? kept(emulator->load(*module, image)) : hipSuccess;
}

EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  TURN;
  NEED_DEVICE_OF(module);
  if (emulator)
    emulator->unload(module);
  destroy(MODULES, module);
  return hipSuccess;
}

EXPORT hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_DEVICE_OF(module);
  if (strcmp(name, "missing") == 0)
    return NOT_FOUND;
  if (emulator)
    return emulated_function(module, name, current, (void **)function) ? kept(NOT_FOUND) : hipSuccess;
  *function = (hipFunction_t)(void *)function_of(name, current);
  return hipSuccess;
}

#ifndef STANDIN_OLD
EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, int *status) {
  TURN;
  *status = capturing(stream);
  return hipSuccess;
}

EXPORT hipError_t hipThreadExchangeStreamCaptureMode(int *mode) {
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return hipSuccess;
}
#endif

#ifndef STANDIN_OLD /* a library without these */
EXPORT hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t function,
                                                          size_t smem, int limit) {
  TURN;
  NEED_DEVICE_OF(function);
  *block = smem ? 256 : 768;
  *grid = 304;
  return limit ? hipErrorInvalidImage : hipSuccess;
}

EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function,
                                                                     int threads, size_t smem) {
  TURN;
  NEED_DEVICE_OF(function);
  int by_memory = (int)(232448 / (1024 + smem)), by_threads = threads > 1024 ? 0 : 2048 / threads;
  *blocks = by_memory < by_threads ? by_memory : by_threads;
  return hipSuccess;
}
#endif

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int gx, unsigned int gy,
                                        unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
                                        unsigned int smem, hipStream_t stream, void **params, void **extra);

EXPORT hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned int gx, unsigned int gy,
                                                   unsigned int gz, unsigned int bx, unsigned int by,
                                                   unsigned int bz, unsigned int smem, hipStream_t stream,
                                                   void **params) {
  TURN;
  note("cooperative");
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, smem, stream, params, NULL);
}

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int gx, unsigned int gy,
                                        unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
                                        unsigned int smem, hipStream_t stream, void **params, void **extra) {
  TURN;
  (void)extra;
  NEED_DEVICE_OF(function);
  NEED_DEVICE_OF_STREAM(stream);
  note("launch %s grid %u %u %u block %u %u %u smem %u stream %d",
       ((const struct object *)(void *)function)->name, gx, gy, gz, bx, by, bz, smem, stream_number(stream));
  note_parameters(params);
  if (taken_by_graph(stream))
    return hipSuccess;
  if (emulator)
    return kept(emulated_launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz},
                                (unsigned[]){1, 1, 1}, smem, params));
  run_kernel(((const struct object *)(void *)function)->name, (unsigned[]){gx, gy, gz},
             (unsigned[]){bx, by, bz}, smem, params);
  return hipSuccess;
}

EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  if (flags != hipStreamNonBlocking)
    return INVALID_VALUE;
  *stream = make(STREAMS, current);
  return hipSuccess;
}

EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  TURN;
  NEED_DEVICE_OF_STREAM(stream);
  destroy(STREAMS, stream);
  return hipSuccess;
}

EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device) {
  TURN;
  *device = ((const struct object *)(void *)stream)->device;
  return hipSuccess;
}

EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  TURN;
  NOT_IN_CAPTURE;
  if (capturing(stream))
    return CAPTURE_UNSUPPORTED;
  NEED_DEVICE_OF_STREAM(stream);
  if (stream)
    note("sync S%d", stream_number(stream));
  else
    note("sync S0 on %d", current);
  waited();
  return hipSuccess;
}

EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  TURN;
  if (capturing(stream))
    return CAPTURE_ISOLATION; /* no event is from inside */
  (void)flags;
  if (stream)
    note("wait S%d E%d", stream_number(stream), number(event));
  else
    note("wait S0 E%d on %d", number(event), current);
  return hipSuccess;
}

EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags) {
  TURN;
  bool timed = flags != hipEventDisableTiming;
  struct object *made_ = make(timed ? MARKS : EVENTS, current);
  made_->timed = timed;
  *event = (hipEvent_t)(void *)made_;
  return hipSuccess;
}

EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  TURN;
  destroy(((const struct object *)event)->timed ? MARKS : EVENTS, event);
  return hipSuccess;
}

EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  TURN;
  if (capturing(stream))
    return isolated((const struct object *)(const void *)event);
  NEED_DEVICE_OF(event);
  if (!((const struct object *)event)->timed && stream)
    note("record E%d S%d", number(event), stream_number(stream));
  else if (!((const struct object *)event)->timed)
    note("record E%d S0 on %d", number(event), current);
  record(event);
  return hipSuccess;
}

EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  TURN;
  NOT_IN_CAPTURE;
  if (!((const struct object *)event)->timed)
    note("sync E%d", number(event));
  waited();
  return hipSuccess;
}

EXPORT hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t from, hipEvent_t to) {
  TURN;
  NOT_IN_CAPTURE;
  NEED_DEVICE_OF(to);
  return kept(elapsed(milliseconds, from, to));
}

static hipError_t give(void **out, size_t size, size_t way) {
  NEED(true, 0);
  *out = emulated_memory(memory_make(size, way), size);
  return *out ? hipSuccess : hipErrorOutOfMemory;
}

EXPORT hipError_t hipMalloc(void **out, size_t size) {
  TURN;
  NOT_IN_CAPTURE;
  return give(out, size, PLAIN);
}

EXPORT hipError_t hipMallocManaged(void **out, size_t size, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  return flags == hipMemAttachGlobal ? give(out, size, PLAIN) : INVALID_VALUE;
}

EXPORT hipError_t hipMallocAsync(void **out, size_t size, hipStream_t stream) {
  TURN;
  NEED_DEVICE_OF_STREAM(stream);
  return give(out, size, POOL);
}

EXPORT hipError_t hipFree(void *memory) {
  TURN;
  NOT_IN_CAPTURE;
  NEED(true, 0);
  emulated_memory(memory, 0);
  return memory_free(memory, PLAIN) ? INVALID_VALUE : hipSuccess;
}

EXPORT hipError_t hipFreeAsync(void *memory, hipStream_t stream) {
  TURN;
  NEED_DEVICE_OF_STREAM(stream);
  emulated_memory(memory, 0);
  return memory_free(memory, POOL) ? INVALID_VALUE : hipSuccess;
}

static uint64_t pool_keeps[8];

EXPORT hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device) {
  TURN;
  *pool = (hipMemPool_t)(void *)&pool_keeps[device % 8];
  return hipSuccess;
}

EXPORT hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  TURN;
  NOT_IN_CAPTURE;
  memcpy(value, pool, sizeof(uint64_t));
  return attribute == hipMemPoolAttrReleaseThreshold ? hipSuccess : INVALID_VALUE;
}

EXPORT hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  TURN;
  NOT_IN_CAPTURE;
  memcpy((void *)pool, value, sizeof(uint64_t));
  note("pool keeps %llu", *(unsigned long long *)value);
  return attribute == hipMemPoolAttrReleaseThreshold ? hipSuccess : INVALID_VALUE;
}

EXPORT hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind,
                                 hipStream_t stream) {
  TURN;
  (void)stream;
  if (kind != hipMemcpyDefault)
    return INVALID_VALUE;
  memcpy(to, from, size);
  return hipSuccess;
}

EXPORT hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                   size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream) {
  TURN;
  (void)stream;
  if (kind != hipMemcpyDefault || width > to_pitch || width > from_pitch)
    return INVALID_VALUE;
  for (size_t row = 0; row < height; ++row)
    memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
  return hipSuccess;
}

EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count_,
                                   hipStream_t stream) {
  TURN;
  (void)stream;
  memset(to, value, count_);
  return hipSuccess;
}

EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count_,
                                    hipStream_t stream) {
  TURN;
  (void)stream;
  for (size_t i = 0; i < count_; ++i)
    ((unsigned short *)to)[i] = value;
  return hipSuccess;
}

EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count_, hipStream_t stream) {
  TURN;
  (void)stream;
  for (size_t i = 0; i < count_; ++i)
    ((int *)to)[i] = value;
  return hipSuccess;
}

EXPORT hipError_t hipHostRegister(void *memory, size_t size, unsigned int flags) {
  TURN;
  NOT_IN_CAPTURE;
  (void)flags;
  register_range(memory, size, 0);
  emulated_memory(memory, size);
  note("register %zu", size);
  return hipSuccess;
}

EXPORT hipError_t hipHostGetDevicePointer(void **out, void *memory, unsigned int flags) {
  TURN;
  (void)flags;
  if (!is_registered(memory))
    return INVALID_VALUE;
  *out = memory;
  return hipSuccess;
}

EXPORT hipError_t hipHostUnregister(void *memory) {
  TURN;
  NOT_IN_CAPTURE;
  emulated_memory(memory, 0);
  note("unregister");
  return unregister_range(memory, 0) ? hipSuccess : kept(NOT_REGISTERED);
}
