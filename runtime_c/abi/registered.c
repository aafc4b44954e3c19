/* registered.c: memory of the host that kernels may use.
 *
 * Where it was registered is remembered: the calling thread may have another device or backend by the time
 * that the memory is taken back. */
#include "abi/stream.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/handle.h"

#include <stdlib.h>

/* Under the lock of core/handle.h; the last one first. The same address may be there twice, by two backends.
 */
static struct registration {
  struct registration *next;
  const void *memory;
  int backend, device;
} *registrations;

static void add(struct registration *made) {
  mgpu_handles_lock();
  made->next = registrations;
  registrations = made;
  mgpu_handles_unlock();
}

/* The last registration of that address, the caller's from now on; NULL when there is none. */
static struct registration *take(const void *memory) {
  mgpu_handles_lock();
  struct registration **link = &registrations;
  while (*link && (*link)->memory != memory)
    link = &(*link)->next;
  struct registration *found = *link;
  if (found)
    *link = found->next;
  mgpu_handles_unlock();
  return found;
}

static void register_there(const struct mgpu_place *place, void *memory, size_t size) {
  struct registration *made = malloc(sizeof *made);
  if (!made) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the list of registered memory.");
    return;
  }
  *made = (struct registration){.memory = memory, .backend = place->backend, .device = place->device};
  if (mgpu_backends[place->backend]->host_register(place->device, memory, size))
    free(made);
  else
    add(made);
}

void mgpuMemHostRegister(void *memory, uint64_t size) {
  struct mgpu_place place;
  if (mgpu_pending() || size == 0)
    return;
  if (!memory || size > SIZE_MAX / 2)
    mgpu_fail(MGPU_ERROR_INVALID, "%llu bytes at %p cannot be registered.", (unsigned long long)size, memory);
  else if (mgpu_stream_place(NULL, &place) == 0)
    register_there(&place, memory, (size_t)size);
}

void mgpuMemHostUnregister(void *memory) {
  struct mgpu_place place;
  struct registration *found = take(memory);
  /* For what is not there the driver's answer counts. */
  if (found)
    mgpu_backends[found->backend]->host_unregister(found->device, memory);
  else if (memory && !mgpu_stream_forked(NULL) && mgpu_stream_place(NULL, &place) == 0)
    mgpu_backends[place.backend]->host_unregister(place.device, memory);
  free(found);
}

/* The bytes that a dense memref descriptor {allocated, aligned, offset, sizes[rank], strides[rank]} covers.
 * 0 with *size 0 for an empty one; a failure when it is not dense. */
static int memref_bytes(int64_t rank, void *descriptor, int64_t element, void **begin, uint64_t *size) {
  struct head {
    char *allocated, *aligned;
    int64_t offset;
    int64_t sizes_and_strides[];
  };
  *begin = NULL;
  *size = 0;
  if (!descriptor || rank < 0 || element <= 0)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "A memref of rank %lld with %lld-byte elements cannot be registered.", (long long)rank,
                     (long long)element);
  const struct head *head = descriptor;
  const int64_t *sizes = head->sizes_and_strides, *strides = sizes + rank;
  int64_t elements = 1, bytes, start;
  bool dense = true;
  for (int64_t i = 0; i < rank; ++i)
    if (sizes[i] <= 0)
      return 0;
  for (int64_t i = rank - 1; i >= 0; --i) {
    dense = dense && (strides[i] == elements || sizes[i] == 1);
    if (__builtin_mul_overflow(elements, sizes[i], &elements))
      dense = false;
  }
  if (!dense || __builtin_mul_overflow(elements, element, &bytes) ||
      __builtin_mul_overflow(head->offset, element, &start))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "Only dense row-major memrefs can be registered; one of rank %lld is not.",
                     (long long)rank);
  *begin = head->aligned + start;
  *size = (uint64_t)bytes;
  return 0;
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor, int64_t element) {
  void *begin;
  uint64_t size;
  if (!mgpu_pending() && memref_bytes(rank, descriptor, element, &begin, &size) == 0)
    mgpuMemHostRegister(begin, size);
}

void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor, int64_t element) {
  void *begin;
  uint64_t size;
  if (memref_bytes(rank, descriptor, element, &begin, &size) == 0 && size)
    mgpuMemHostUnregister(begin);
}

/* What kernels on the calling thread's device know registered memory by. NULL while an error is kept. */
static void *device_address(void *memory) {
  struct mgpu_place place;
  void *address = memory;
  if (mgpu_pending() || !memory || mgpu_stream_place(NULL, &place) ||
      (mgpu_backends[place.backend]->device_address &&
       mgpu_backends[place.backend]->device_address(place.device, memory, &address)))
    return NULL;
  return address;
}

mgpuMemref1d mgpuMemGetDeviceMemRef1dFloat(float *allocated, float *aligned, int64_t offset, int64_t size,
                                           int64_t stride) {
  (void)allocated;
  void *address = device_address(aligned);
  return (mgpuMemref1d){address, address, offset, size, stride};
}

mgpuMemref1d mgpuMemGetDeviceMemRef1dInt32(int32_t *allocated, int32_t *aligned, int64_t offset, int64_t size,
                                           int64_t stride) {
  (void)allocated;
  void *address = device_address(aligned);
  return (mgpuMemref1d){address, address, offset, size, stride};
}
