/* backend.h: what the files of the cuda backend share: the driver's functions, devices, and the way into
 * a device's context. */
#ifndef MGPU_INTERNAL_CUDA_BACKEND_H
#define MGPU_INTERNAL_CUDA_BACKEND_H

#include "cuda/driver.h"
#include "vendor/vendor.h"

struct mgpu_cuda_device {
  CUdevice ordinal;
  CUcontext context; /* atomic; retained at first use */
  int major, minor;
  int most_shared; /* bytes of workgroup memory that a block can have */
  bool pools;      /* memory is allocated and freed in a stream's order */
};

extern struct cuda_driver mgpu_cuda;
extern struct mgpu_vendor mgpu_cuda_vendor;
extern struct mgpu_cuda_device mgpu_cuda_devices[MGPU_MAX_DEVICES];

/* Makes the device's context the calling thread's; *previous is for mgpu_cuda_leave. CUDA_SUCCESS, or a code
 * and which call gave it; keeps no error. */
int mgpu_cuda_try_enter(int device, CUcontext *previous, const char **call);

/* The same; 0, or a failure that is kept. */
int mgpu_cuda_enter(int device, CUcontext *previous);

/* Puts the caller's context back. A failure is kept; what was done in the device's context is done. */
void mgpu_cuda_leave(int device, CUcontext previous);

/* While some thread captures a graph, drivers refuse calls that might wait or allocate, from any thread, and
 * the capture is lost. Those of ours have nothing to do with what is captured, and stand between these two: a
 * wait for a stream that is captured is refused all the same. */
CUstreamCaptureMode mgpu_cuda_outside_capture(void);
void mgpu_cuda_back_to_capture(CUstreamCaptureMode mode);

/* Keeps the error of a driver's function, if `result` is one. */
static inline int mgpu_cuda_check(int device, CUresult result, const char *call, bool waited) {
  return result ? mgpu_vendor_failed(&mgpu_cuda_vendor, device, result, call, waited) : 0;
}

/* The body of a slot that is one driver call in the device's context. */
#define MGPU_CUDA_CALL_(device, call, arguments, waited, unsafe)                                             \
  do {                                                                                                       \
    CUcontext previous_;                                                                                     \
    int failure_ = mgpu_cuda_enter(device, &previous_);                                                      \
    if (failure_)                                                                                            \
      return failure_;                                                                                       \
    CUstreamCaptureMode mode_ = (unsafe) ? mgpu_cuda_outside_capture() : 0;                                  \
    CUresult result_ = mgpu_cuda.call arguments;                                                             \
    if (unsafe)                                                                                              \
      mgpu_cuda_back_to_capture(mode_);                                                                      \
    mgpu_cuda_leave(device, previous_);                                                                      \
    return mgpu_cuda_check(device, result_, #call, waited);                                                  \
  } while (0)
#define MGPU_CUDA_CALL(device, call, arguments) MGPU_CUDA_CALL_(device, call, arguments, false, false)
/* One that drivers may refuse while some thread captures a graph. */
#define MGPU_CUDA_UNSAFE(device, call, arguments) MGPU_CUDA_CALL_(device, call, arguments, false, true)
#define MGPU_CUDA_WAIT(device, call, arguments) MGPU_CUDA_CALL_(device, call, arguments, true, true)

/* The same for a call that releases something: no error when the driver is gone. */
#define MGPU_CUDA_RELEASE(device, call, arguments)                                                           \
  do {                                                                                                       \
    CUcontext previous_;                                                                                     \
    const char *name_ = "";                                                                                  \
    int code_ = mgpu_cuda_try_enter(device, &previous_, &name_);                                             \
    if (!code_) {                                                                                            \
      name_ = #call;                                                                                         \
      CUstreamCaptureMode mode_ = mgpu_cuda_outside_capture();                                               \
      code_ = mgpu_cuda.call arguments;                                                                      \
      mgpu_cuda_back_to_capture(mode_);                                                                      \
      mgpu_cuda_leave(device, previous_);                                                                    \
    }                                                                                                        \
    return mgpu_vendor_released(&mgpu_cuda_vendor, device, code_, name_);                                    \
  } while (0)

/* Slots, by the file that has them; see core/backend.h. */
/* cuda/image.c */
int mgpu_cuda_image_rank(int device, const struct mgpu_image *image);
/* cuda/module.c */
int mgpu_cuda_module_load(int device, const void *data, size_t size, int jit_level, void **module);
int mgpu_cuda_module_unload(int device, void *module);
int mgpu_cuda_kernel_get(int device, void *module, const char *name, void **kernel);
/* cuda/launch.c */
int mgpu_cuda_launch(int device, void *kernel, const struct mgpu_launch *launch);
/* cuda/occupancy.c */
int mgpu_cuda_occupancy(int device, void *kernel, uint32_t smem, int *threads, int *blocks);
/* cuda/memory.c */
int mgpu_cuda_alloc(int device, size_t size, void *stream, bool shared, void **memory);
int mgpu_cuda_free(int device, void *memory, void *stream, bool shared);
int mgpu_cuda_memcpy(int device, void *to, const void *from, size_t size, void *stream);
int mgpu_cuda_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                       size_t width, size_t height, void *stream);
int mgpu_cuda_memset(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream);
int mgpu_cuda_host_register(int device, void *memory, size_t size);
int mgpu_cuda_host_unregister(int device, void *memory);
int mgpu_cuda_device_address(int device, void *memory, void **address);
/* cuda/tensor.c */
int mgpu_cuda_describe(int device, const struct mgpu_tensor *tensor, struct mgpu_descriptor *out);

/* cuda/mark.c */
bool mgpu_cuda_mark_create(int device, void **mark);
bool mgpu_cuda_mark_put(int device, void *mark, void *stream);
bool mgpu_cuda_mark_now(int device, void *mark, uint64_t *at);
bool mgpu_cuda_mark_elapsed(int device, void *from, void *to, double *ns);

/* What a kernel is to this backend. */
struct mgpu_cuda_kernel {
  struct mgpu_vendor_kernel common;
  CUfunction function;
  int static_shared;
  int asked; /* atomic: whether the driver has been told to allow all workgroup memory that there is */
  int wide_clusters; /* atomic: whether it has been told to allow more than the portable size */
};

/* The bytes of dynamic workgroup memory that a block of the kernel can have. */
static inline int mgpu_cuda_most_dynamic(int device, const struct mgpu_cuda_kernel *kernel) {
  return mgpu_cuda_devices[device].most_shared - kernel->static_shared;
}

/* Asks for so many bytes of dynamic workgroup memory where that takes asking. Called in the device's context;
 * 0, or a failure that is kept. */
int mgpu_cuda_allow_shared(int device, struct mgpu_cuda_kernel *kernel, int bytes);

#endif
