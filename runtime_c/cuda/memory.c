/* memory.c: memory, copies and fills through the CUDA driver. */
#include "core/thread.h"
#include "cuda/backend.h"

#include <stdio.h>

static CUdeviceptr address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

static CUresult allocate(int index, size_t size, void *stream, bool shared, CUdeviceptr *memory) {
  if (shared)
    return mgpu_cuda.cuMemAllocManaged(memory, size, CU_MEM_ATTACH_GLOBAL);
  return mgpu_cuda_devices[index].pools ? mgpu_cuda.cuMemAllocAsync(memory, size, stream)
                                        : mgpu_cuda.cuMemAlloc_v2(memory, size);
}

int mgpu_cuda_alloc(int index, size_t size, void *stream, bool shared, void **out) {
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (failure)
    return failure;
  CUdeviceptr memory = 0;
  CUstreamCaptureMode mode = mgpu_cuda_outside_capture();
  CUresult result = allocate(index, size, stream, shared, &memory);
  /* What is freed behind work that has not been waited for is there only then. */
  if (result == CUDA_ERROR_OUT_OF_MEMORY && mgpu_thread()->unwaited.work &&
      mgpu_cuda.cuStreamSynchronize(stream) == CUDA_SUCCESS)
    result = allocate(index, size, stream, shared, &memory);
  mgpu_cuda_back_to_capture(mode);
  mgpu_cuda_leave(index, previous);
  *out = (void *)(uintptr_t)memory;
  if (!result)
    return 0;
  char what[64];
  snprintf(what, sizeof what, "The allocation of %zu bytes", size);
  return mgpu_cuda_check(index, result, what, false);
}

int mgpu_cuda_free(int device, void *memory, void *stream, bool shared) {
  if (mgpu_cuda_devices[device].pools && !shared)
    MGPU_CUDA_RELEASE(device, cuMemFreeAsync, (address(memory), stream));
  MGPU_CUDA_RELEASE(device, cuMemFree_v2, (address(memory)));
}

int mgpu_cuda_memcpy(int device, void *to, const void *from, size_t size, void *stream) {
  MGPU_CUDA_UNSAFE(device, cuMemcpyAsync, (address(to), address(from), size, stream));
}

int mgpu_cuda_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                       size_t width, size_t height, void *stream) {
  CUDA_MEMCPY2D rows = {
      .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
      .srcDevice = address(from),
      .srcPitch = (size_t)from_pitch,
      .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
      .dstDevice = address(to),
      .dstPitch = to_pitch,
      .WidthInBytes = width,
      .Height = height,
  };
  MGPU_CUDA_UNSAFE(device, cuMemcpy2DAsync_v2, (&rows, stream));
}

int mgpu_cuda_memset(int device, void *to, uint64_t value, unsigned width, size_t elements, void *stream) {
  uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
  if (width == 1)
    MGPU_CUDA_CALL(device, cuMemsetD8Async, (address(to), (unsigned char)value, elements, stream));
  if (width == 2)
    MGPU_CUDA_CALL(device, cuMemsetD16Async, (address(to), (unsigned short)value, elements, stream));
  if (width == 4)
    MGPU_CUDA_CALL(device, cuMemsetD32Async, (address(to), low, elements, stream));
  if (low == high)
    MGPU_CUDA_CALL(device, cuMemsetD32Async, (address(to), low, 2 * elements, stream));
  CUcontext previous; /* no 64-bit fill: the halves are two columns of a matrix that is two words wide */
  int failure = mgpu_cuda_enter(device, &previous);
  if (failure)
    return failure;
  CUresult result = mgpu_cuda.cuMemsetD2D32Async(address(to), 8, low, 1, elements, stream);
  if (!result)
    result = mgpu_cuda.cuMemsetD2D32Async(address(to) + 4, 8, high, 1, elements, stream);
  mgpu_cuda_leave(device, previous);
  return mgpu_cuda_check(device, result, "cuMemsetD2D32Async", false);
}

int mgpu_cuda_host_register(int device, void *memory, size_t size) {
  /* For kernels of all devices. */
  const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  MGPU_CUDA_UNSAFE(device, cuMemHostRegister_v2, (memory, size, flags));
}

int mgpu_cuda_host_unregister(int device, void *memory) {
  MGPU_CUDA_RELEASE(device, cuMemHostUnregister, (memory));
}

int mgpu_cuda_device_address(int device, void *memory, void **out) {
  CUdeviceptr found = 0;
  CUcontext previous;
  int failure = mgpu_cuda_enter(device, &previous);
  if (failure)
    return failure;
  CUresult result = mgpu_cuda.cuMemHostGetDevicePointer_v2(&found, memory, 0);
  mgpu_cuda_leave(device, previous);
  *out = (void *)(uintptr_t)found;
  return mgpu_cuda_check(device, result, "cuMemHostGetDevicePointer", false);
}
