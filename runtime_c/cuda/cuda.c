/* cuda.c: NVIDIA devices through the CUDA driver API, bound at first use: devices, contexts, streams, events.
 *
 * Work runs in each device's primary context, which the CUDA runtime and other libraries share. The caller's
 * current context is put back after every call. */
#include "cuda/backend.h"
#include "sparse/sparse.h"

#include <stdio.h>

/* What the driver may keep of freed pool memory instead of unmapping it at the next synchronization. */
static const unsigned long long POOL_KEEPS = 1ull << 30;

struct cuda_driver mgpu_cuda;
struct mgpu_cuda_device mgpu_cuda_devices[MGPU_MAX_DEVICES];

static const struct mgpu_symbol symbols[] = {
#define CUDA_FUNCTION(name, params) {#name, &mgpu_cuda.name, false},
#define CUDA_OPTIONAL(name, params) {#name, &mgpu_cuda.name, true},
#include "cuda/driver.def"
};

/* A call while the driver starts: its code, and its name for the sentence that says why there is no device.
 */
#define ASK(function, arguments) (*call = #function, mgpu_cuda.function arguments)

static int start(int *count, const char **call) {
  CUresult result = ASK(cuInit, (0));
  return result ? result : ASK(cuDeviceGetCount, (count));
}

static int read_device(int index, mgpuDeviceInfo *info, const char **call) {
  struct mgpu_cuda_device *device = &mgpu_cuda_devices[index];
  int warp = 0, processors = 0, pools = 0;
  const struct attribute {
    CUdevice_attribute which;
    int *value;
  } attributes[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &device->major},
                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &device->minor},
                    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &device->most_shared},
                    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &warp},
                    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &processors}};
  size_t memory = 0;
  CUresult result = ASK(cuDeviceGet, (&device->ordinal, index));
  for (size_t i = 0; !result && i < sizeof attributes / sizeof *attributes; ++i)
    result = ASK(cuDeviceGetAttribute, (attributes[i].value, attributes[i].which, device->ordinal));
  if (!result)
    result = ASK(cuDeviceTotalMem_v2, (&memory, device->ordinal));
  if (!result)
    result = ASK(cuDeviceGetName, (info->name, (int)sizeof info->name, device->ordinal));
  if (result)
    return result;
  device->pools = mgpu_cuda.cuMemAllocAsync && mgpu_cuda.cuMemFreeAsync &&
                  mgpu_cuda.cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                                 device->ordinal) == CUDA_SUCCESS &&
                  pools;
  snprintf(info->chip, sizeof info->chip, "sm_%d%d", device->major, device->minor);
  info->memory_bytes = memory;
  info->warp_size = (uint32_t)warp;
  info->multiprocessors = (uint32_t)processors;
  return 0;
}

static const char *code_name(int code) {
  const char *name = NULL;
  mgpu_cuda.cuGetErrorName(code, &name);
  return name;
}

static const char *code_text(int code) {
  const char *text = NULL;
  mgpu_cuda.cuGetErrorString(code, &text);
  return text;
}

static mgpuDeviceInfo devices[MGPU_MAX_DEVICES];
static const struct mgpu_vendor_kernel *launched[MGPU_MAX_DEVICES];

struct mgpu_vendor mgpu_cuda_vendor = {
    .devices = devices,
    .launched = launched,
    .name = "cuda",
    .title = "CUDA",
    .driver = "the CUDA driver",
    .libraries = (const char *const[]){"libcuda.so.1", NULL},
    .symbols = symbols,
    .symbols_count = sizeof symbols / sizeof *symbols,
    .start = start,
    .read_device = read_device,
    .code_name = code_name,
    .code_text = code_text,
    .no_device = CUDA_ERROR_NO_DEVICE,
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .gone = CUDA_ERROR_DEINITIALIZED,
    .late_codes =
        (const int[]){CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT,
                      CUDA_ERROR_ASSERT, CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                      CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
                      CUDA_ERROR_LAUNCH_FAILED, 0},
};

CUstreamCaptureMode mgpu_cuda_outside_capture(void) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (mgpu_cuda.cuThreadExchangeStreamCaptureMode)
    mgpu_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

void mgpu_cuda_back_to_capture(CUstreamCaptureMode mode) {
  if (mgpu_cuda.cuThreadExchangeStreamCaptureMode)
    mgpu_cuda.cuThreadExchangeStreamCaptureMode(&mode);
}

static void keep_pool_memory(const struct mgpu_cuda_device *device) {
  CUmemoryPool pool;
  unsigned long long keeps = 0;
  if (device->pools && mgpu_cuda.cuDeviceGetDefaultMemPool && mgpu_cuda.cuMemPoolGetAttribute &&
      mgpu_cuda.cuMemPoolSetAttribute && mgpu_cuda.cuDeviceGetDefaultMemPool(&pool, device->ordinal) == 0 &&
      mgpu_cuda.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keeps) == 0 && keeps == 0) {
    keeps = POOL_KEEPS;
    mgpu_cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keeps);
  }
}

static CUresult retain(struct mgpu_cuda_device *device) {
  CUresult result = CUDA_SUCCESS;
  CUcontext context = NULL;
  mgpu_init_lock();
  if (!device->context) {
    CUstreamCaptureMode mode = mgpu_cuda_outside_capture();
    result = mgpu_cuda.cuDevicePrimaryCtxRetain(&context, device->ordinal);
    if (result == CUDA_SUCCESS)
      keep_pool_memory(device);
    mgpu_cuda_back_to_capture(mode);
    if (result == CUDA_SUCCESS)
      __atomic_store_n(&device->context, context, __ATOMIC_RELEASE);
  }
  mgpu_init_unlock();
  return result;
}

int mgpu_cuda_try_enter(int index, CUcontext *previous, const char **call) {
  struct mgpu_cuda_device *device = &mgpu_cuda_devices[index];
  if (mgpu_vendor_state(&mgpu_cuda_vendor) == MGPU_VENDOR_FORKED)
    return MGPU_CODE_FORKED;
  CUresult result = CUDA_SUCCESS;
  *call = "cuDevicePrimaryCtxRetain";
  if (!__atomic_load_n(&device->context, __ATOMIC_ACQUIRE))
    result = retain(device);
  if (result)
    return result;
  *call = "cuCtxGetCurrent";
  result = mgpu_cuda.cuCtxGetCurrent(previous);
  if (result == CUDA_SUCCESS && *previous != device->context) {
    *call = "cuCtxSetCurrent";
    result = mgpu_cuda.cuCtxSetCurrent(device->context);
  }
  return result;
}

int mgpu_cuda_enter(int device, CUcontext *previous) {
  const char *call = "";
  int code = mgpu_cuda_try_enter(device, previous, &call);
  return code ? mgpu_vendor_failed(&mgpu_cuda_vendor, device, code, call, false) : 0;
}

void mgpu_cuda_leave(int device, CUcontext previous) {
  if (previous == mgpu_cuda_devices[device].context)
    return;
  CUresult result = mgpu_cuda.cuCtxSetCurrent(previous);
  if (result)
    mgpu_vendor_released(&mgpu_cuda_vendor, device, result, "cuCtxSetCurrent");
}

static int device_count(void) { return mgpu_vendor_count(&mgpu_cuda_vendor); }

static const char *why_absent(void) { return mgpu_vendor_why_absent(&mgpu_cuda_vendor); }

static int device_info(int device, mgpuDeviceInfo *info) {
  *info = mgpu_cuda_vendor.devices[device];
  return 0;
}

static void after_fork(void) { mgpu_vendor_after_fork(&mgpu_cuda_vendor); }

static bool forked(void) { return mgpu_vendor_forked(&mgpu_cuda_vendor); }

static int stream_create(int device, void **stream) {
  MGPU_CUDA_UNSAFE(device, cuStreamCreate, ((CUstream *)stream, CU_STREAM_NON_BLOCKING));
}

static int stream_destroy(int device, void *stream) {
  MGPU_CUDA_RELEASE(device, cuStreamDestroy_v2, (stream));
}

static int stream_sync(int device, void *stream) { MGPU_CUDA_WAIT(device, cuStreamSynchronize, (stream)); }

static int stream_wait_event(int device, void *stream, void *event) {
  MGPU_CUDA_CALL(device, cuStreamWaitEvent, (stream, event, 0));
}

static int stream_device(void **handle, int current) {
  enum { PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD; 1 is CU_STREAM_LEGACY */
  void *stream = *handle;
  const int entered = current;
  CUcontext context = NULL, previous;
  CUdevice ordinal = 0;
  CUresult result = CUDA_SUCCESS;
  const char *call;
  if ((uintptr_t)stream <= (uintptr_t)PER_THREAD) /* stands for one of the current device */
    return current;
  if (mgpu_cuda_try_enter(current, &previous, &call))
    return current; /* which the work on the stream then reports */
  result = mgpu_cuda.cuStreamGetCtx(stream, &context);
  if (!result && context != mgpu_cuda_devices[entered].context) {
    result = mgpu_cuda.cuCtxSetCurrent(context);
    if (!result)
      result = mgpu_cuda.cuCtxGetDevice(&ordinal);
    mgpu_cuda.cuCtxSetCurrent(mgpu_cuda_devices[entered].context);
    for (int i = 0; !result && i < mgpu_cuda_vendor.count; ++i)
      if (mgpu_cuda_devices[i].ordinal == ordinal)
        current = i;
  }
  mgpu_cuda_leave(entered, previous);
  return current;
}

static int event_create(int device, void **event) {
  MGPU_CUDA_CALL(device, cuEventCreate, ((CUevent *)event, CU_EVENT_DISABLE_TIMING));
}

static int event_destroy(int device, void *event) { MGPU_CUDA_RELEASE(device, cuEventDestroy_v2, (event)); }

static int event_record(int device, void *event, void *stream) {
  MGPU_CUDA_CALL(device, cuEventRecord, (event, stream));
}

static int event_sync(int device, void *event) { MGPU_CUDA_WAIT(device, cuEventSynchronize, (event)); }

static int capture_status(int device, void *stream, CUstreamCaptureStatus *status) {
  MGPU_CUDA_CALL(device, cuStreamIsCapturing, (stream, status));
}

static int stream_capturing(int device, void *stream, bool *capturing) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  int failure = mgpu_cuda.cuStreamIsCapturing ? capture_status(device, stream, &status) : 0;
  *capturing = !failure && status != CU_STREAM_CAPTURE_STATUS_NONE;
  return failure;
}

const struct mgpu_backend mgpu_backend_cuda = {
    .name = "cuda",
    .target = "nvvm",
    .device_count = device_count,
    .why_absent = why_absent,
    .device_info = device_info,
    .image_rank = mgpu_cuda_image_rank,
    .module_load = mgpu_cuda_module_load,
    .module_unload = mgpu_cuda_module_unload,
    .kernel_get = mgpu_cuda_kernel_get,
    .launch = mgpu_cuda_launch,
    .occupancy = mgpu_cuda_occupancy,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .stream_wait_event = stream_wait_event,
    .stream_device = stream_device,
    .stream_capturing = stream_capturing,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_sync = event_sync,
    .alloc = mgpu_cuda_alloc,
    .free = mgpu_cuda_free,
    .memcpy = mgpu_cuda_memcpy,
    .memcpy2d = mgpu_cuda_memcpy2d,
    .memset = mgpu_cuda_memset,
    .host_register = mgpu_cuda_host_register,
    .host_unregister = mgpu_cuda_host_unregister,
    .device_address = mgpu_cuda_device_address,
    .sparse = &mgpu_cuda_sparse,
    .describe = mgpu_cuda_describe,
    .mark_create = mgpu_cuda_mark_create,
    .mark_put = mgpu_cuda_mark_put,
    .mark_now = mgpu_cuda_mark_now,
    .mark_elapsed = mgpu_cuda_mark_elapsed,
    .after_fork = after_fork,
    .forked = forked,
};
