/* memory.c: device memory, copies and fills of the ABI. */
#include "abi/descriptors.h"
#include "abi/guard.h"
#include "abi/stream.h"
#include "core/allocations.h"
#include "core/backend.h"
#include "core/error.h"

#include <string.h>
#include <sys/mman.h>

/* `later`: compiled code waits before other streams or the host use the memory. */
static void *allocate(uint64_t size, void *stream, bool shared, bool later) {
  struct mgpu_place place;
  if (mgpu_pending() || size == 0 || mgpu_stream_place(stream, &place))
    return NULL;
  const struct mgpu_backend *backend = mgpu_backends[place.backend];
  void *memory = NULL;
  if (size > SIZE_MAX / 2) {
    mgpu_fail(MGPU_ERROR_MEMORY, "An allocation of %llu bytes is too large.", (unsigned long long)size);
    return NULL;
  }
  if (backend->alloc(place.device, (size_t)size, place.driver, shared, &memory))
    return NULL;
  if (!mgpu_allocation_add((struct mgpu_allocation){memory, place.backend, place.device, (size_t)size, shared,
                                                    mgpu_guard_number()})) {
    backend->free(place.device, memory, place.driver, shared);
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the table of allocations.");
    return NULL;
  }
  /* With no stream named, any stream may use the memory next; it must be ready for all of them. */
  if (later)
    mgpu_stream_unwaited(NULL);
  else if (!stream && !shared)
    backend->stream_sync(place.device, place.driver);
  return memory;
}

/* Memory that the CPU alone can use; MGPU_NO_BACKEND in the table. Nothing is reserved for it: it is as large
 * as was asked for, which may be more than there is. */
static void *substitute(uint64_t size) {
  if (size > SIZE_MAX / 2)
    return NULL;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED)
    return NULL;
  struct mgpu_allocation made = {.memory = memory, .backend = MGPU_NO_BACKEND, .size = (size_t)size};
  made.guard = mgpu_guard_number();
  if (mgpu_allocation_add(made))
    return memory;
  munmap(memory, (size_t)size);
  return NULL;
}

void *mgpuMemAlloc(uint64_t size, void *stream, bool shared) {
  void *memory = allocate(size, stream, shared, false);
  /* After a failure compiled code goes on to its end without the device; what it does itself must be
   * harmless. */
  return !memory && shared && size ? substitute(size) : memory;
}

void *mgpuMemAllocLater(uint64_t size) { return allocate(size, NULL, false, true); }

/* Where memory is given back: behind the stream's work, on the memory's own device. 0, or a failure that is
 * kept. */
static int place_to_free(const struct mgpu_allocation *from, void *stream, struct mgpu_place *place) {
  if (!mgpu_stream_forked(stream) && mgpu_stream_place(stream, place) == 0) {
    if (place->backend == from->backend && place->device == from->device)
      return 0;
    /* Work there may still use it. */
    mgpu_backends[place->backend]->stream_sync(place->device, place->driver);
  }
  return mgpu_stream_to_release(from->backend, from->device, place);
}

void mgpuMemFree(void *memory, void *stream) {
  struct mgpu_allocation from;
  struct mgpu_place place;
  if (!memory)
    return;
  if (!mgpu_allocation_take(memory, &from)) {
    mgpu_fail(MGPU_ERROR_INVALID, "%p is no allocation of this runtime, or has been freed already.", memory);
    return;
  }
  if (from.backend == MGPU_NO_BACKEND) {
    munmap(memory, from.size);
    return;
  }
  if (from.shared) /* is freed in no stream's order */
    mgpuWaitForLater();
  if (mgpu_pending()) /* then compiled code has not waited for the work of its tokens */
    mgpu_scopes_finish(NULL);
  if (place_to_free(&from, stream, &place))
    return;
  mgpu_descriptors_drop(&place, memory, from.size);
  mgpu_backends[place.backend]->free(place.device, memory, place.driver, from.shared);
}

void mgpuMemFreeLater(void *memory) {
  mgpuMemFree(memory, NULL);
  if (memory)
    mgpu_stream_unwaited(NULL);
}

void mgpuMemcpy(void *to, void *from, size_t size, void *stream) {
  struct mgpu_place place;
  if (mgpu_pending() || size == 0)
    return;
  if (!to || !from)
    mgpu_fail(MGPU_ERROR_INVALID, "A copy of %zu bytes has NULL as its %s.", size,
              to ? "source" : "destination");
  else if (size > SIZE_MAX / 2)
    mgpu_fail(MGPU_ERROR_INVALID, "A copy of %zu bytes is too large.", size);
  else if (mgpu_stream_place(stream, &place) == 0)
    mgpu_backends[place.backend]->memcpy(place.device, to, from, size, place.driver);
}

static void fill(void *to, uint64_t value, unsigned width, size_t count, void *stream) {
  struct mgpu_place place;
  if (mgpu_pending() || count == 0)
    return;
  if (!to)
    mgpu_fail(MGPU_ERROR_INVALID, "A fill of %zu elements has NULL as its destination.", count);
  else if (count > SIZE_MAX / 2 / width)
    mgpu_fail(MGPU_ERROR_INVALID, "A fill of %zu elements of %u bytes is too large.", count, width);
  else if (mgpu_stream_place(stream, &place) == 0)
    mgpu_backends[place.backend]->memset(place.device, to, value, width, count, place.driver);
}

void mgpuMemset8(void *to, unsigned char value, size_t count, void *stream) {
  fill(to, value, 1, count, stream);
}

void mgpuMemset16(void *to, unsigned short value, size_t count, void *stream) {
  fill(to, value, 2, count, stream);
}

void mgpuMemset32(void *to, unsigned int value, size_t count, void *stream) {
  fill(to, value, 4, count, stream);
}

void mgpuMemset64(void *to, uint64_t value, size_t count, void *stream) { fill(to, value, 8, count, stream); }

/* Memory that device and host share, with the global's initial value; NULL after a failure. */
static void *make_shared(const mgpuGlobalSlot *global, const struct mgpu_place *place) {
  const struct mgpu_backend *backend = mgpu_backends[place->backend];
  size_t size = (size_t)global->size;
  void *memory = NULL;
  if (backend->alloc(place->device, size, place->driver, true, &memory))
    return NULL;
  if (backend->memcpy(place->device, memory, global->initial, size, place->driver) == 0 &&
      backend->stream_sync(place->device, place->driver) == 0)
    return memory;
  backend->free(place->device, memory, place->driver, true);
  return NULL;
}

static bool is_forked(void) {
  bool forked = false;
  for (int i = 0; i < MGPU_BACKENDS; ++i)
    forked |= mgpu_backend_forked(i);
  return forked;
}

void *mgpuSharedGlobal(mgpuGlobalSlot *global) {
  if (!global) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuSharedGlobal needs the slot of a global.");
    return NULL;
  }
  void *memory = __atomic_load_n(&global->state, __ATOMIC_ACQUIRE);
  struct mgpu_place place;
  if (memory) /* the child of a fork cannot touch what its parent had of a driver */
    return is_forked() ? global->initial : memory;
  if (global->size == 0 || mgpu_pending() || mgpu_stream_place(NULL, &place) ||
      mgpu_backends[place.backend]->is_cpu)
    return global->initial;
  mgpuWaitForLater(); /* kernels may wait for those of other threads, which the lock would keep waiting */
  mgpu_lock();
  if (!global->state)
    __atomic_store_n(&global->state, make_shared(global, &place), __ATOMIC_RELEASE);
  memory = global->state;
  mgpu_unlock();
  return memory ? memory : global->initial;
}
