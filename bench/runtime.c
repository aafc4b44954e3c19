/* runtime.c: what the calls of the mgpu runtime cost next to the calls of the driver under them, in one
 * process on a stand-in driver. Prints a line per measurement: round, name, nanoseconds of one call of ours,
 * of the driver's. See runtime.py. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/driver.h"
#include "mgpu.h"

enum { CALLS = 20000, ARGUMENTS = 16, BYTES = 8 };

static struct cuda_driver driver;
static CUcontext context;
static CUmodule driver_module;
static CUfunction driver_function;
static CUstream driver_stream;
static void *our_module, *our_function, *our_stream;
static mgpuModuleSlot module_slot = {.name = "m"};
static mgpuKernelSlot kernel_slot = {&module_slot, "k", NULL};
static char from[BYTES], to[BYTES];
static int arguments_count;

static void fail(const char *what) {
  fprintf(stderr, "runtime.c: %s: %s\n", what, mgpuGetLastErrorMessage());
  exit(1);
}

static void check(CUresult result) {
  if (result)
    fail("the driver");
}

/* The pointers to a launch's arguments, made anew for each launch, as compiled code does. */
#define PARAMS                                                                                               \
  uint64_t values[ARGUMENTS];                                                                                \
  void *params[ARGUMENTS];                                                                                   \
  for (int i = 0; i < arguments_count; ++i) {                                                                \
    values[i] = (uint64_t)i;                                                                                 \
    params[i] = &values[i];                                                                                  \
  }                                                                                                          \
  __asm__ volatile("" ::"r"(values), "r"(params) : "memory")

static void our_launch(void) {
  PARAMS;
  mgpuKernelLaunch(&kernel_slot, 4, 1, 1, 256, 1, 1, 0, 0, 0, 0, our_stream, arguments_count ? params : NULL,
                   (size_t)arguments_count, 0);
}

static void driver_launch(void) {
  PARAMS;
  driver.cuLaunchKernel(driver_function, 4, 1, 1, 256, 1, 1, 0, driver_stream,
                        arguments_count ? params : NULL, NULL);
}

static void our_sync_launch(void) {
  PARAMS;
  mgpuKernelLaunch(&kernel_slot, 4, 1, 1, 256, 1, 1, 0, 0, 0, 0, NULL, params, (size_t)arguments_count, 1);
}

static void driver_sync_launch(void) {
  driver_launch();
  driver.cuStreamSynchronize(driver_stream);
}

/* A launch that is waited for, as stock MLIR 22 writes it, on our runtime. */
static void upstream_launch(void) {
  PARAMS;
  void *stream = mgpuStreamCreate();
  void *function = mgpuModuleGetFunction(our_module, "k");
  mgpuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, params, NULL, (size_t)arguments_count);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
}

/* The same as stock MLIR's own runtime passes it on. */
static void upstream_driver_launch(void) {
  PARAMS;
  CUstream stream;
  CUfunction function;
  driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  driver.cuModuleGetFunction(&function, driver_module, "k");
  driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, params, NULL);
  driver.cuStreamSynchronize(stream);
  driver.cuStreamDestroy_v2(stream);
}

static void our_stream_pair(void) { mgpuStreamDestroy(mgpuStreamCreate()); }

static void driver_stream_pair(void) {
  CUstream stream;
  driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  driver.cuStreamDestroy_v2(stream);
}

static void our_event_pair(void) { mgpuEventDestroy(mgpuEventCreate()); }

static void driver_event_pair(void) {
  CUevent event;
  driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  driver.cuEventDestroy_v2(event);
}

static void our_memory_pair(void) { mgpuMemFree(mgpuMemAlloc(1024, our_stream, false), our_stream); }

static void driver_memory_pair(void) {
  CUdeviceptr memory;
  driver.cuMemAllocAsync(&memory, 1024, driver_stream);
  driver.cuMemFreeAsync(memory, driver_stream);
}

static void our_copy(void) { mgpuMemcpy(to, from, BYTES, our_stream); }

static void driver_copy(void) {
  driver.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, BYTES, driver_stream);
}

static void our_sync(void) { mgpuStreamSynchronize(our_stream); }

static void driver_sync(void) { driver.cuStreamSynchronize(driver_stream); }

static void our_function_of(void) { mgpuModuleGetFunction(our_module, "k"); }

static void driver_function_of(void) {
  CUfunction function;
  driver.cuModuleGetFunction(&function, driver_module, "k");
}

static const struct measurement {
  const char *name;
  void (*ours)(void), (*drivers)(void);
  int arguments;
} measurements[] = {
    {"launch, 0 arguments", our_launch, driver_launch, 0},
    {"launch, 4 arguments", our_launch, driver_launch, 4},
    {"launch, 16 arguments", our_launch, driver_launch, 16},
    {"launch and wait", our_sync_launch, driver_sync_launch, 4},
    {"launch and wait, MLIR's calls", upstream_launch, upstream_driver_launch, 4},
    {"stream create, destroy", our_stream_pair, driver_stream_pair, 0},
    {"event create, destroy", our_event_pair, driver_event_pair, 0},
    {"alloc, free", our_memory_pair, driver_memory_pair, 0},
    {"module get function", our_function_of, driver_function_of, 0},
    {"memcpy of 8 bytes", our_copy, driver_copy, 0},
    {"stream synchronize", our_sync, driver_sync, 0},
};

/* Nanoseconds of one call. */
static double time_of(void (*call)(void)) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < CALLS; ++i)
    call();
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec)) / CALLS;
}

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library || !dlsym(library, "standin_log"))
    fail("libcuda.so.1 is not the stand-in");
#define BIND(name) *(void **)&driver.name = dlsym(library, #name);
#define CUDA_FUNCTION(name, params) BIND(name)
#define CUDA_OPTIONAL(name, params) BIND(name)
#include "cuda/driver.def"
  check(driver.cuInit(0));
  check(driver.cuDevicePrimaryCtxRetain(&context, 0));
  check(driver.cuCtxSetCurrent(context));
  check(driver.cuModuleLoadDataEx(&driver_module, "image", 0, NULL, NULL));
  check(driver.cuModuleGetFunction(&driver_function, driver_module, "k"));
  check(driver.cuStreamCreate(&driver_stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 5000; ++i) /* until its log is full, and costs nothing more */
    driver.cuStreamSynchronize(driver_stream);
}

/* IMAGES is a container with an image of the module m for nvvm:sm_90; see runtime.py. */
static void open_runtime(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    fail(path);
  static char images[1 << 16] __attribute__((aligned(16)));
  size_t size = fread(images, 1, sizeof images, file);
  fclose(file);
  module_slot.images_begin = images;
  module_slot.images_end = images + size;
  mgpuBackendUse("cuda");
  our_stream = mgpuStreamCreate();
  our_module = mgpuModuleLoad(images, size);
  our_function = mgpuModuleGetFunction(our_module, "k");
  if (mgpuGetLastError() || !our_function)
    fail("the runtime");
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "runtime IMAGES ROUNDS current|none\n");
    return 2;
  }
  open_driver();
  open_runtime(arguments[1]);
  bool current = strcmp(arguments[3], "current") == 0;
  for (int round = 0; round < atoi(arguments[2]); ++round)
    for (size_t i = 0; i < sizeof measurements / sizeof *measurements; ++i) {
      const struct measurement *one = &measurements[i];
      arguments_count = one->arguments;
      check(driver.cuCtxSetCurrent(context));
      double drivers = time_of(one->drivers);
      check(driver.cuCtxSetCurrent(current ? context : NULL));
      double ours = time_of(one->ours);
      if (mgpuGetLastError())
        fail(one->name);
      printf("%d\t%s\t%.3f\t%.3f\n", round, one->name, ours, drivers);
    }
  return 0;
}
