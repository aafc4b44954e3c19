/* hip.c: AMD devices through the HIP library, bound at first use: devices, streams, events.
 *
 * The caller's current device is put back after every call. */
#include "hip/backend.h"

#include "hip/layout.h"
#include "sparse/sparse.h"

#include <stdio.h>
#include <string.h>

/* What the library may keep of freed pool memory. */
static const uint64_t POOL_KEEPS = 1ull << 30;

struct hip_driver mgpu_hip;
static bool pools[MGPU_MAX_DEVICES]; /* written before the vendor's state is known */

static const struct mgpu_symbol symbols[] = {
#define HIP_FUNCTION(result, name, params) {#name, &mgpu_hip.name, false},
#define HIP_OPTIONAL(result, name, params) {#name, &mgpu_hip.name, true},
#define HIP_UNDECLARED(result, name, params) {#name, &mgpu_hip.name, true},
#include "hip/driver.def"
};

/* A call while the library starts: its code, and its name for the sentence that says why there is no device.
 */
#define ASK(function, arguments) (*call = #function, mgpu_hip.function arguments)

static int start(int *count, const char **call) {
  hipError_t result = ASK(hipInit, (0));
  return result ? result : ASK(hipGetDeviceCount, (count));
}

static int read_chip(int index, mgpuDeviceInfo *info, const char **call) {
  union {
    unsigned char bytes[HIP_PROPERTIES_ROOM];
    long long alignment;
  } properties;
  memset(&properties, 0, sizeof properties);
  size_t at = HIP_PROPERTIES_R0600_ARCH;
  hipError_t result;
  if (mgpu_hip.hipGetDevicePropertiesR0600) {
    result = ASK(hipGetDevicePropertiesR0600, (&properties, index));
  } else if (mgpu_hip.hipGetDeviceProperties) {
    at = HIP_PROPERTIES_OLD_ARCH;
    result = ASK(hipGetDeviceProperties, (&properties, index));
  } else {
    return MGPU_CODE_UNUSABLE;
  }
  const char *chip = (const char *)properties.bytes + at;
  snprintf(info->chip, sizeof info->chip, "%.*s", (int)sizeof info->chip - 1, chip);
  return result ? result : strncmp(chip, "gfx", 3) ? MGPU_CODE_UNUSABLE : 0;
}

/* The library keeps the last failure of a thread, and other libraries take what they find there for theirs.
 */
static void after_failure(void) { mgpu_hip.hipGetLastError(); }

static void keep_pool_memory(int index) {
  hipMemPool_t pool = NULL;
  uint64_t keeps = 0;
  if (!pools[index] || !mgpu_hip.hipDeviceGetDefaultMemPool || !mgpu_hip.hipMemPoolGetAttribute ||
      !mgpu_hip.hipMemPoolSetAttribute)
    return;
  hipError_t result = mgpu_hip.hipDeviceGetDefaultMemPool(&pool, index);
  if (!result)
    result = mgpu_hip.hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keeps);
  if (!result && keeps == 0) {
    keeps = POOL_KEEPS;
    result = mgpu_hip.hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keeps);
  }
  if (result)
    after_failure();
}

static int read_device(int index, mgpuDeviceInfo *info, const char **call) {
  int warp = 0, processors = 0, has_pools = 0;
  size_t memory = 0;
  hipDevice_t ordinal;
  int result = read_chip(index, info, call);
  if (!result)
    result = ASK(hipDeviceGet, (&ordinal, index));
  if (!result)
    result = ASK(hipDeviceGetAttribute, (&warp, hipDeviceAttributeWarpSize, index));
  if (!result)
    result = ASK(hipDeviceGetAttribute, (&processors, hipDeviceAttributeMultiprocessorCount, index));
  if (!result)
    result = ASK(hipDeviceTotalMem, (&memory, ordinal));
  if (!result)
    result = ASK(hipDeviceGetName, (info->name, (int)sizeof info->name, ordinal));
  if (result)
    return result;
  if (mgpu_hip.hipMallocAsync && mgpu_hip.hipFreeAsync) {
    if (mgpu_hip.hipDeviceGetAttribute(&has_pools, hipDeviceAttributeMemoryPoolsSupported, index))
      after_failure();
    pools[index] = has_pools != 0;
  }
  info->memory_bytes = memory;
  info->warp_size = (uint32_t)warp;
  info->multiprocessors = (uint32_t)processors;
  return 0;
}

static const char *code_name(int code) { return mgpu_hip.hipGetErrorName(code); }

static const char *code_text(int code) { return mgpu_hip.hipGetErrorString(code); }

static mgpuDeviceInfo devices[MGPU_MAX_DEVICES];
static const struct mgpu_vendor_kernel *launched[MGPU_MAX_DEVICES];

struct mgpu_vendor mgpu_hip_vendor = {
    .devices = devices,
    .launched = launched,
    .name = "hip",
    .title = "HIP",
    .driver = "the HIP library",
    .libraries = (const char *const[]){"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL},
    .symbols = symbols,
    .symbols_count = sizeof symbols / sizeof *symbols,
    .start = start,
    .read_device = read_device,
    .code_name = code_name,
    .code_text = code_text,
    .after_failure = after_failure,
    .no_device = hipErrorNoDevice,
    .out_of_memory = hipErrorOutOfMemory,
    .gone = hipErrorDeinitialized,
    .late_codes = (const int[]){hipErrorECCNotCorrectable, hipErrorIllegalAddress, hipErrorLaunchTimeOut,
                                hipErrorAssert, hipErrorLaunchFailure, 0},
};

bool mgpu_hip_has_pools(int device) { return pools[device]; }

int mgpu_hip_try_enter(int device, int *previous, const char **call) {
  static int prepared[MGPU_MAX_DEVICES]; /* atomic */
  if (mgpu_vendor_state(&mgpu_hip_vendor) == MGPU_VENDOR_FORKED)
    return MGPU_CODE_FORKED;
  *call = "hipGetDevice";
  hipError_t result = mgpu_hip.hipGetDevice(previous);
  if (result == hipSuccess && *previous != device) {
    *call = "hipSetDevice";
    result = mgpu_hip.hipSetDevice(device);
  }
  if (result == hipSuccess && !__atomic_load_n(&prepared[device], __ATOMIC_RELAXED) &&
      !__atomic_exchange_n(&prepared[device], 1, __ATOMIC_RELAXED)) {
    int mode = mgpu_hip_outside_capture();
    keep_pool_memory(device);
    mgpu_hip_back_to_capture(mode);
  }
  return result;
}

int mgpu_hip_enter(int device, int *previous) {
  const char *call = "";
  int code = mgpu_hip_try_enter(device, previous, &call);
  return code ? mgpu_vendor_failed(&mgpu_hip_vendor, device, code, call, false) : 0;
}

void mgpu_hip_leave(int device, int previous) {
  if (previous == device)
    return;
  hipError_t result = mgpu_hip.hipSetDevice(previous);
  if (result)
    mgpu_vendor_released(&mgpu_hip_vendor, device, result, "hipSetDevice");
}

int mgpu_hip_outside_capture(void) {
  int mode = hipStreamCaptureModeRelaxed;
  if (mgpu_hip.hipThreadExchangeStreamCaptureMode)
    (void)mgpu_hip.hipThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

void mgpu_hip_back_to_capture(int mode) {
  if (mgpu_hip.hipThreadExchangeStreamCaptureMode)
    (void)mgpu_hip.hipThreadExchangeStreamCaptureMode(&mode);
}

static int device_count(void) { return mgpu_vendor_count(&mgpu_hip_vendor); }

static const char *why_absent(void) { return mgpu_vendor_why_absent(&mgpu_hip_vendor); }

static int device_info(int device, mgpuDeviceInfo *info) {
  *info = mgpu_hip_vendor.devices[device];
  return 0;
}

static void after_fork(void) { mgpu_vendor_after_fork(&mgpu_hip_vendor); }

static bool forked(void) { return mgpu_vendor_forked(&mgpu_hip_vendor); }

static int stream_create(int device, void **stream) {
  MGPU_HIP_UNSAFE(device, hipStreamCreateWithFlags, ((hipStream_t *)stream, hipStreamNonBlocking));
}

static int stream_destroy(int device, void *stream) { MGPU_HIP_RELEASE(device, hipStreamDestroy, (stream)); }

static int stream_sync(int device, void *stream) { MGPU_HIP_WAIT(device, hipStreamSynchronize, (stream)); }

static int stream_wait_event(int device, void *stream, void *event) {
  MGPU_HIP_CALL(device, hipStreamWaitEvent, (stream, event, 0));
}

static int stream_device(void **handle, int current) {
  enum { LEGACY = 1, PER_THREAD = 2 }; /* hipStreamPerThread, which stands for one of the current device */
  hipDevice_t device = current;
  void *stream = *handle;
  if ((uintptr_t)stream == LEGACY) /* hipStreamLegacy of late versions: NULL in all of them */
    *handle = NULL;
  if ((uintptr_t)stream <= PER_THREAD || !mgpu_hip.hipStreamGetDevice ||
      mgpu_vendor_state(&mgpu_hip_vendor) != MGPU_VENDOR_READY)
    return current;
  if (mgpu_hip.hipStreamGetDevice(stream, &device) != hipSuccess) {
    after_failure();
    return current;
  }
  return device < 0 || device >= mgpu_hip_vendor.count ? current : device;
}

static int event_create(int device, void **event) {
  MGPU_HIP_CALL(device, hipEventCreateWithFlags, ((hipEvent_t *)event, hipEventDisableTiming));
}

static int event_destroy(int device, void *event) { MGPU_HIP_RELEASE(device, hipEventDestroy, (event)); }

static int event_record(int device, void *event, void *stream) {
  MGPU_HIP_CALL(device, hipEventRecord, (event, stream));
}

static int event_sync(int device, void *event) { MGPU_HIP_WAIT(device, hipEventSynchronize, (event)); }

static int capture_status(int device, void *stream, int *status) {
  MGPU_HIP_CALL(device, hipStreamIsCapturing, (stream, status));
}

static int stream_capturing(int device, void *stream, bool *capturing) {
  int status = hipStreamCaptureStatusNone;
  int failure = mgpu_hip.hipStreamIsCapturing ? capture_status(device, stream, &status) : 0;
  *capturing = !failure && status != hipStreamCaptureStatusNone;
  return failure;
}

const struct mgpu_backend mgpu_backend_hip = {
    .name = "hip",
    .also = "rocm",
    .target = "rocdl",
    .device_count = device_count,
    .why_absent = why_absent,
    .device_info = device_info,
    .image_rank = mgpu_hip_image_rank,
    .module_load = mgpu_hip_module_load,
    .module_unload = mgpu_hip_module_unload,
    .kernel_get = mgpu_hip_kernel_get,
    .launch = mgpu_hip_launch,
    .occupancy = mgpu_hip_occupancy,
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
    .alloc = mgpu_hip_alloc,
    .free = mgpu_hip_free,
    .memcpy = mgpu_hip_memcpy,
    .memcpy2d = mgpu_hip_memcpy2d,
    .memset = mgpu_hip_memset,
    .host_register = mgpu_hip_host_register,
    .host_unregister = mgpu_hip_host_unregister,
    .device_address = mgpu_hip_device_address,
    .sparse = &mgpu_hip_sparse,
    .mark_create = mgpu_hip_mark_create,
    .mark_put = mgpu_hip_mark_put,
    .mark_now = mgpu_hip_mark_now,
    .mark_elapsed = mgpu_hip_mark_elapsed,
    .after_fork = after_fork,
    .forked = forked,
};
