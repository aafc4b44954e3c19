/* mgpu.h: the public C ABI of the mgpu runtime.
 *
 * Two groups of functions. The first has the names and signatures that LLVM 22's gpu-to-llvm pass and
 * #gpu.select_object translation emit, so that libmgpu.so stands in for upstream's CUDA and ROCm runtime
 * libraries. The second is what offload's own host lowering emits and what language bindings call: lazily
 * loaded modules, cached kernels, stream scopes, errors, devices.
 *
 * Rules for every function here:
 *  - Any thread may call it. Streams, events and memory may be used from another thread than their creator's.
 *  - It never aborts. The first failure of a thread is kept (mgpuGetLastError); until it is fetched, further
 *    calls of that thread that would touch a device do nothing and return 0 or NULL. Functions that release
 *    things always run. Memory shared with the CPU is then the CPU's alone, because the program goes on to
 *    use it.
 *  - It prints failures on stderr where OFFLOAD_PRINT_ERRORS=1 asks for that; a program that has never
 *    fetched an error is told those that it has when a thread or the process ends.
 *  - A NULL stream means the calling thread's own stream on its current device.
 *  - Nothing touches a driver before the first call that needs one.
 */
#ifndef MGPU_H
#define MGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MGPU_ABI_VERSION 1u

#ifndef MGPU_API
#define MGPU_API __attribute__((visibility("default")))
#endif

/* Error codes of mgpuGetLastError. The driver's own code and name stand in the message. */
enum {
  MGPU_SUCCESS = 0,
  MGPU_ERROR_INVALID = 1,     /* an argument is wrong */
  MGPU_ERROR_NO_DEVICE = 2,   /* the backend asked for has no device here */
  MGPU_ERROR_NO_IMAGE = 3,    /* no image fits any device here */
  MGPU_ERROR_BAD_IMAGE = 4,   /* the image container or an image in it is damaged */
  MGPU_ERROR_MEMORY = 5,      /* out of memory */
  MGPU_ERROR_UNSUPPORTED = 6, /* this backend has no such thing */
  MGPU_ERROR_DRIVER = 7,      /* the driver refused the call or the kernel failed */
  MGPU_ERROR_ASSERT = 8,      /* an assertion of the program failed */
};

/* What mgpuCount counts. */
enum {
  MGPU_COUNT_STREAMS = 0,        /* made and not destroyed, the threads' own among them */
  MGPU_COUNT_EVENTS = 1,         /* made and not destroyed */
  MGPU_COUNT_POOLED_STREAMS = 2, /* destroyed, kept for the next that is made */
  MGPU_COUNT_POOLED_EVENTS = 3,
  MGPU_COUNT_ALLOCATIONS = 4, /* of device memory, not freed */
  MGPU_COUNT_MODULES = 5,     /* loaded by a driver */
  MGPU_COUNT_QUEUED = 6,      /* work on the host's streams that mgpuHostSchedule has put off */
  MGPU_COUNT_LATE_WRITES =
      7, /* blocks of freed host memory that were written to later, while work is put off */
  MGPU_COUNT_DESCRIPTORS = 8, /* of tiled tensors, in device memory */
  MGPU_COUNT_OPERANDS = 9,    /* of sparse operations: made and not destroyed */
};

/* One gpu.module of an artifact, in writable data of the artifact. `state` starts as NULL and belongs to the
 * runtime. [images_begin, images_end) is a sequence of LLVM offload binaries (see core/image.h). */
typedef struct mgpuModuleSlot {
  const void *images_begin;
  const void *images_end;
  const char *name;
  void *state;
} mgpuModuleSlot;

/* One kernel of such a module. `state` starts as NULL and belongs to the runtime. */
typedef struct mgpuKernelSlot {
  mgpuModuleSlot *module;
  const char *name;
  void *state;
} mgpuKernelSlot;

/* A global of an artifact's host code that kernels use too: its initial value in the artifact's own data.
 * `state` starts as NULL and belongs to the runtime. */
typedef struct mgpuGlobalSlot {
  void *initial;
  uint64_t size; /* bytes */
  void *state;
} mgpuGlobalSlot;

/* The streams that one activation of a host function created. Zero-initialized on the stack of the function;
 * never holds more than MGPU_SCOPE_STREAMS, so loops do not grow it: past that, streams are handed out again
 * in turn, which orders more work than asked for but never less. */
#define MGPU_SCOPE_STREAMS 14
typedef struct mgpuScope {
  uint32_t count;
  uint32_t next;
  struct mgpuScope *outer; /* the thread's scope before this one */
  void *streams[MGPU_SCOPE_STREAMS];
} mgpuScope;

/* A memref of rank 1, as MLIR returns one; offset, size and stride in elements. */
typedef struct mgpuMemref1d {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t size;
  int64_t stride;
} mgpuMemref1d;

/* How mgpuKernelLaunch waits; whatever is none of these is as MGPU_WAIT. */
#define MGPU_WAIT_NOT 0 /* whoever has the stream waits */
#define MGPU_WAIT 1     /* it returns after the kernel has finished */
/* With NULL as the stream: the caller waits, by mgpuWaitForLater, mgpuStreamSynchronize(NULL) or a launch with
 * MGPU_WAIT on NULL, before it looks at what the kernel has written, calls anything but the runtime, uses or
 * sets another stream or device, or returns. Who leaves through a guard waits there. */
#define MGPU_WAIT_LATER 2

/* Room for what mgpuGuardEnter keeps, 16-byte aligned. */
#define MGPU_GUARD_BYTES 512

/* A device as bindings see it. Strings are NUL-terminated. */
typedef struct mgpuDeviceInfo {
  char backend[16]; /* "cuda", "hip", "host" */
  char name[128];   /* the vendor's product name */
  char chip[64];    /* "sm_90", "gfx942:sramecc+:xnack-", "x86-64-v3" */
  uint64_t memory_bytes;
  uint32_t warp_size;
  uint32_t multiprocessors;
} mgpuDeviceInfo;

/* A thread's kept error: its code, or MGPU_SUCCESS, and its message, NUL-terminated. */
#define MGPU_MESSAGE_BYTES 1024
typedef struct mgpuKeptError {
  int32_t code;
  char message[MGPU_MESSAGE_BYTES];
} mgpuKeptError;

#define MGPU_FUNCTION(ret, name, params) MGPU_API ret name params;
#include "mgpu_functions.def"
#undef MGPU_FUNCTION

/* The function table of an artifact, for bindings. An artifact exports one symbol of the runtime,
 * offload_api, because mgpu* functions stay hidden in it: two artifacts in one process must not meet. Every
 * function of mgpu_functions.def is a member, in the order of that file; new ones are added at its end. */
typedef struct mgpuApi {
  uint32_t abi_version;
  uint32_t size; /* sizeof(mgpuApi) of the runtime that filled it */
#define MGPU_FUNCTION(ret, name, params) ret(*name) params;
#include "mgpu_functions.def"
#undef MGPU_FUNCTION
} mgpuApi;

/* Returns the table, or NULL if `abi_version` is not one this runtime speaks. Never fails otherwise. */
MGPU_API const mgpuApi *offload_api(uint32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif
