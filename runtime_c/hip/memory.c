/* memory.c: memory, copies and fills through the HIP library. */
#include "core/thread.h"
#include "hip/backend.h"

#include <stdio.h>

static hipError_t allocate(int index, size_t size, void *stream, bool shared, void **out) {
  if (shared)
    return mgpu_hip.hipMallocManaged(out, size, hipMemAttachGlobal);
  return mgpu_hip_has_pools(index) ? mgpu_hip.hipMallocAsync(out, size, stream)
                                   : mgpu_hip.hipMalloc(out, size);
}

int mgpu_hip_alloc(int index, size_t size, void *stream, bool shared, void **out) {
  int previous;
  int failure = mgpu_hip_enter(index, &previous);
  if (failure)
    return failure;
  int mode = mgpu_hip_outside_capture();
  hipError_t result = allocate(index, size, stream, shared, out);
  /* What is freed behind work that has not been waited for is there only then. */
  if (result == hipErrorOutOfMemory && mgpu_thread()->unwaited.work &&
      mgpu_hip.hipStreamSynchronize(stream) == hipSuccess)
    result = allocate(index, size, stream, shared, out);
  mgpu_hip_back_to_capture(mode);
  mgpu_hip_leave(index, previous);
  if (!result)
    return 0;
  char what[64];
  snprintf(what, sizeof what, "The allocation of %zu bytes", size);
  return mgpu_hip_check(index, result, what, false);
}

int mgpu_hip_free(int device, void *memory, void *stream, bool shared) {
  if (mgpu_hip_has_pools(device) && !shared)
    MGPU_HIP_RELEASE(device, hipFreeAsync, (memory, stream));
  MGPU_HIP_RELEASE(device, hipFree, (memory));
}

int mgpu_hip_memcpy(int device, void *to, const void *from, size_t size, void *stream) {
  MGPU_HIP_UNSAFE(device, hipMemcpyAsync, (to, from, size, hipMemcpyDefault, stream));
}

int mgpu_hip_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                      size_t width, size_t height, void *stream) {
  MGPU_HIP_UNSAFE(device, hipMemcpy2DAsync,
                  (to, to_pitch, from, (size_t)from_pitch, width, height, hipMemcpyDefault, stream));
}

/* No 64-bit fill: writes the first element as two words and doubles what is there. */
static hipError_t fill_by_doubling(char *to, uint64_t value, size_t elements, hipStream_t stream) {
  hipError_t result = mgpu_hip.hipMemsetD32Async(to, (int)(uint32_t)value, 1, stream);
  if (!result)
    result = mgpu_hip.hipMemsetD32Async(to + 4, (int)(uint32_t)(value >> 32), 1, stream);
  for (size_t done = 1; !result && done < elements;) {
    size_t next = done < elements - done ? done : elements - done;
    result = mgpu_hip.hipMemcpyAsync(to + 8 * done, to, 8 * next, hipMemcpyDefault, stream);
    done += next;
  }
  return result;
}

int mgpu_hip_memset(int device, void *to, uint64_t value, unsigned width, size_t elements, void *stream) {
  uint32_t low = (uint32_t)value;
  if (width == 1)
    MGPU_HIP_CALL(device, hipMemsetD8Async, (to, (unsigned char)value, elements, stream));
  if (width == 2)
    MGPU_HIP_CALL(device, hipMemsetD16Async, (to, (unsigned short)value, elements, stream));
  if (width == 4)
    MGPU_HIP_CALL(device, hipMemsetD32Async, (to, (int)low, elements, stream));
  if (low == (uint32_t)(value >> 32))
    MGPU_HIP_CALL(device, hipMemsetD32Async, (to, (int)low, 2 * elements, stream));
  int previous;
  int failure = mgpu_hip_enter(device, &previous);
  if (failure)
    return failure;
  hipError_t result = fill_by_doubling(to, value, elements, stream);
  mgpu_hip_leave(device, previous);
  return mgpu_hip_check(device, result, "A 64-bit fill", false);
}

int mgpu_hip_host_register(int device, void *memory, size_t size) {
  MGPU_HIP_UNSAFE(device, hipHostRegister, (memory, size, 0));
}

int mgpu_hip_host_unregister(int device, void *memory) {
  MGPU_HIP_RELEASE(device, hipHostUnregister, (memory));
}

int mgpu_hip_device_address(int device, void *memory, void **out) {
  MGPU_HIP_CALL(device, hipHostGetDevicePointer, (out, memory, 0));
}
