/* fake.c: a fake of the mgpu runtime, for tests of argument checks alone. It says that a GPU is
 * in use, and its device memory is the CPU's. */
#include "mgpu.h"

#include <stdlib.h>
#include <string.h>

static const char *backend = "cuda";
static _Thread_local int32_t failure;
static int synchronized;

static void *handle(void) { return &synchronized; }
static void nothing(void *pointer) { (void)pointer; }
static void *allocate(uint64_t size, void *stream, bool shared) {
  return (void)stream, (void)shared, malloc(size);
}
static void release(void *memory, void *stream) { (void)stream, free(memory); }
static void copy(void *to, void *from, size_t size, void *stream) { (void)stream, memcpy(to, from, size); }
static void clear(void *to, unsigned char value, size_t count, void *stream) {
  (void)stream, memset(to, value, count);
}
static void fill(void *to, unsigned value, size_t count, void *stream) {
  (void)stream;
  for (size_t i = 0; i < count; ++i)
    memcpy((char *)to + 4 * i, &value, 4);
}
static void synchronize(void *stream) { synchronized = stream == (void *)0x77 ? 77 : synchronized; }
static int32_t last_error(void) {
  int32_t code = failure;
  failure = 0;
  return code;
}
static const char *message(void) { return "the fake refuses"; }
static void exchange(mgpuKeptError *error) {
  int32_t code = failure;
  failure = error->code;
  *error = (mgpuKeptError){.code = code};
}
static int32_t count(const char *name) { return strcmp(name, "cuda") == 0 || strcmp(name, "host") == 0; }
static int32_t info(const char *name, int32_t device, mgpuDeviceInfo *out) {
  (void)device;
  *out = (mgpuDeviceInfo){.chip = "sm_00", .name = "Fake", .warp_size = 32};
  strcpy(out->backend, name);
  return 0;
}
static int32_t use(const char *name) {
  if (name && !count(name))
    return failure = MGPU_ERROR_NO_DEVICE;
  backend = !name || strcmp(name, "host") ? "cuda" : "host";
  return 0;
}
static const char *name(void) { return backend; }
static int32_t device(void) { return 0; }
static int32_t device_of(void *stream) { return (void)stream, 0; }
static void *thread_stream(void *stream) { return (void)stream, NULL; }
static void set_device(int32_t number) { (void)number; }
static bool capturing(void *stream) { return (void)stream, false; }
static void wait_stream(void *waiter, void *waited) { (void)waiter, (void)waited; }

int64_t _mlir_ciface_synchronized(void) { return synchronized; }

__attribute__((visibility("default"))) const mgpuApi *offload_api(uint32_t version) {
  static mgpuApi table = {
      .abi_version = MGPU_ABI_VERSION,
      .size = FAKE_SIZE,
      .mgpuStreamCreate = handle,
      .mgpuStreamDestroy = nothing,
      .mgpuStreamSynchronize = synchronize,
      .mgpuMemAlloc = allocate,
      .mgpuMemFree = release,
      .mgpuMemcpy = copy,
      .mgpuMemset8 = clear,
      .mgpuMemset32 = fill,
      .mgpuGetLastError = last_error,
      .mgpuGetLastErrorMessage = message,
      .mgpuErrorExchange = exchange,
      .mgpuDeviceCount = count,
      .mgpuDeviceGetInfo = info,
      .mgpuBackendUse = use,
      .mgpuBackendName = name,
      .mgpuGetDefaultDevice = device,
      .mgpuSetDefaultDevice = set_device,
      .mgpuStreamDevice = device_of,
      .mgpuSetThreadStream = thread_stream,
      .mgpuStreamCapturing = capturing,
      .mgpuStreamWaitStream = wait_stream,
  };
  return version == FAKE_VERSION ? &table : NULL;
}

/* What the functions of the tests call directly. */
void *mgpuMemAlloc(uint64_t size, void *stream, bool shared) { return allocate(size, stream, shared); }
void mgpuMemset32(void *to, unsigned value, size_t n, void *stream) { fill(to, value, n, stream); }
void mgpuMemcpy(void *to, void *from, size_t size, void *stream) {
  (void)to, (void)from, (void)size, (void)stream;
}
void mgpuStreamSynchronize(void *stream) { (void)stream; }
