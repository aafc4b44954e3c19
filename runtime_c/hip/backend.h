/* backend.h: what the files of the hip backend share: the library's functions, devices, and the way onto
 * a device. */
#ifndef MGPU_INTERNAL_HIP_BACKEND_H
#define MGPU_INTERNAL_HIP_BACKEND_H

#include "hip/driver.h"
#include "vendor/vendor.h"

extern struct hip_driver mgpu_hip;
extern struct mgpu_vendor mgpu_hip_vendor;

/* Makes the device the calling thread's; *previous is for mgpu_hip_leave. hipSuccess, or a code and which
 * call gave it; keeps no error. */
int mgpu_hip_try_enter(int device, int *previous, const char **call);

/* The same; 0, or a failure that is kept. */
int mgpu_hip_enter(int device, int *previous);

/* Puts the caller's device back. A failure is kept; what was done on the device is done. */
void mgpu_hip_leave(int device, int previous);

/* Whether the device's memory is allocated and freed in a stream's order. */
bool mgpu_hip_has_pools(int device);

/* As mgpu_cuda_outside_capture says. */
int mgpu_hip_outside_capture(void);
void mgpu_hip_back_to_capture(int mode);

/* Keeps the error of a function of the library, if `result` is one. */
static inline int mgpu_hip_check(int device, hipError_t result, const char *call, bool waited) {
  return result ? mgpu_vendor_failed(&mgpu_hip_vendor, device, result, call, waited) : 0;
}

/* The body of a slot that is one call of the library on the device. */
#define MGPU_HIP_CALL_(device, call, arguments, waited, unsafe)                                              \
  do {                                                                                                       \
    int previous_;                                                                                           \
    int failure_ = mgpu_hip_enter(device, &previous_);                                                       \
    if (failure_)                                                                                            \
      return failure_;                                                                                       \
    int mode_ = (unsafe) ? mgpu_hip_outside_capture() : 0;                                                   \
    hipError_t result_ = mgpu_hip.call arguments;                                                            \
    if (unsafe)                                                                                              \
      mgpu_hip_back_to_capture(mode_);                                                                       \
    mgpu_hip_leave(device, previous_);                                                                       \
    return mgpu_hip_check(device, result_, #call, waited);                                                   \
  } while (0)
#define MGPU_HIP_CALL(device, call, arguments) MGPU_HIP_CALL_(device, call, arguments, false, false)
/* One that drivers may refuse while some thread captures a graph. */
#define MGPU_HIP_UNSAFE(device, call, arguments) MGPU_HIP_CALL_(device, call, arguments, false, true)
#define MGPU_HIP_WAIT(device, call, arguments) MGPU_HIP_CALL_(device, call, arguments, true, true)

/* The same for a call that releases something: no error when the library is gone. */
#define MGPU_HIP_RELEASE(device, call, arguments)                                                            \
  do {                                                                                                       \
    int previous_;                                                                                           \
    const char *name_ = "";                                                                                  \
    int code_ = mgpu_hip_try_enter(device, &previous_, &name_);                                              \
    if (!code_) {                                                                                            \
      name_ = #call;                                                                                         \
      int mode_ = mgpu_hip_outside_capture();                                                                \
      code_ = mgpu_hip.call arguments;                                                                       \
      mgpu_hip_back_to_capture(mode_);                                                                       \
      mgpu_hip_leave(device, previous_);                                                                     \
    }                                                                                                        \
    return mgpu_vendor_released(&mgpu_hip_vendor, device, code_, name_);                                     \
  } while (0)

/* Slots, by the file that has them; see core/backend.h. */
/* hip/image.c */
int mgpu_hip_image_rank(int device, const struct mgpu_image *image);
/* hip/module.c */
int mgpu_hip_module_load(int device, const void *data, size_t size, int jit_level, void **module);
int mgpu_hip_module_unload(int device, void *module);
int mgpu_hip_kernel_get(int device, void *module, const char *name, void **kernel);
int mgpu_hip_launch(int device, void *kernel, const struct mgpu_launch *launch);
/* hip/occupancy.c */
int mgpu_hip_occupancy(int device, void *kernel, uint32_t smem, int *threads, int *blocks);
/* hip/memory.c */
int mgpu_hip_alloc(int device, size_t size, void *stream, bool shared, void **memory);
int mgpu_hip_free(int device, void *memory, void *stream, bool shared);
int mgpu_hip_memcpy(int device, void *to, const void *from, size_t size, void *stream);
int mgpu_hip_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                      size_t width, size_t height, void *stream);
int mgpu_hip_memset(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream);
int mgpu_hip_host_register(int device, void *memory, size_t size);
int mgpu_hip_host_unregister(int device, void *memory);
int mgpu_hip_device_address(int device, void *memory, void **address);
/* hip/mark.c */
bool mgpu_hip_mark_create(int device, void **mark);
bool mgpu_hip_mark_put(int device, void *mark, void *stream);
bool mgpu_hip_mark_now(int device, void *mark, uint64_t *at);
bool mgpu_hip_mark_elapsed(int device, void *from, void *to, double *ns);

/* What a kernel is to this backend. */
struct mgpu_hip_kernel {
  struct mgpu_vendor_kernel common; /* first */
  hipFunction_t function;
};

#endif
