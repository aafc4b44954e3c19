/* handle.c: slabs and pools of stream and event handles. */
#include "core/handle.h"

#include "core/backend.h"
#include "core/error.h"

#include <pthread.h>
#include <stdlib.h>

enum { SLABS = 20, FIRST_SLAB = 64, POOLED_STREAMS = 64, POOLED_EVENTS = 256 };

struct pool {
  struct mgpu_handle *first[2]; /* by kind */
  unsigned count[2];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mgpu_handle *slabs[SLABS]; /* atomic; slab i has FIRST_SLAB << i handles */
static struct mgpu_handle *empty;        /* handles without a driver object */
static unsigned given[2];                /* handles that are live, by kind */
static struct pool pools[MGPU_BACKENDS][MGPU_MAX_DEVICES];

void mgpu_handles_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_handles_unlock(void) { pthread_mutex_unlock(&lock); }

struct mgpu_handle *mgpu_handle_of(const void *pointer) {
  uintptr_t address = (uintptr_t)pointer;
  for (int i = 0; i < SLABS; ++i) {
    struct mgpu_handle *slab = __atomic_load_n(&slabs[i], __ATOMIC_ACQUIRE);
    if (!slab)
      break;
    uintptr_t offset = address - (uintptr_t)slab;
    if (address >= (uintptr_t)slab && offset < ((uintptr_t)FIRST_SLAB << i) * sizeof *slab)
      return offset % sizeof *slab == 0 ? &slab[offset / sizeof *slab] : NULL;
  }
  return NULL;
}

/* Adds a slab to the empty list; called with the lock held. False when out of memory. */
static bool grow(void) {
  int i = 0;
  while (i < SLABS && slabs[i])
    ++i;
  if (i == SLABS)
    return false;
  size_t count = (size_t)FIRST_SLAB << i;
  struct mgpu_handle *slab = calloc(count, sizeof *slab);
  if (!slab)
    return false;
  for (size_t k = 0; k < count; ++k) {
    slab[k].next = empty;
    empty = &slab[k];
  }
  __atomic_store_n(&slabs[i], slab, __ATOMIC_RELEASE);
  return true;
}

static void put_empty(struct mgpu_handle *handle) {
  mgpu_handles_lock();
  handle->next = empty;
  empty = handle;
  mgpu_handles_unlock();
}

struct mgpu_handle *mgpu_handle_get(int backend, int device, enum mgpu_kind kind) {
  struct pool *pool = &pools[backend][device];
  mgpu_handles_lock();
  struct mgpu_handle *handle = pool->first[kind];
  if (handle) {
    pool->first[kind] = handle->next;
    --pool->count[kind];
    ++given[kind];
    mgpu_handles_unlock();
    __atomic_store_n(&handle->live, 1, __ATOMIC_RELEASE);
    return handle;
  }
  if (empty || grow()) {
    handle = empty;
    empty = handle->next;
  }
  mgpu_handles_unlock();
  if (!handle) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a stream or event handle.");
    return NULL;
  }
  const struct mgpu_backend *vendor = mgpu_backends[backend];
  void *driver = NULL;
  int failure =
      kind == MGPU_STREAM ? vendor->stream_create(device, &driver) : vendor->event_create(device, &driver);
  if (failure) {
    put_empty(handle);
    return NULL;
  }
  handle->driver = driver;
  handle->backend = backend;
  handle->device = device;
  handle->kind = kind;
  mgpu_handles_lock();
  ++given[kind];
  mgpu_handles_unlock();
  __atomic_store_n(&handle->live, 1, __ATOMIC_RELEASE);
  return handle;
}

bool mgpu_handle_put(struct mgpu_handle *handle) {
  if (__atomic_exchange_n(&handle->live, 0, __ATOMIC_ACQ_REL) == 0)
    return false;
  struct pool *pool = &pools[handle->backend][handle->device];
  unsigned limit = handle->kind == MGPU_STREAM ? POOLED_STREAMS : POOLED_EVENTS;
  mgpu_handles_lock();
  --given[handle->kind];
  bool keep = pool->count[handle->kind] < limit;
  if (keep) {
    handle->next = pool->first[handle->kind];
    pool->first[handle->kind] = handle;
    ++pool->count[handle->kind];
  }
  mgpu_handles_unlock();
  if (!keep) {
    const struct mgpu_backend *vendor = mgpu_backends[handle->backend];
    if (handle->kind == MGPU_STREAM)
      vendor->stream_destroy(handle->device, handle->driver);
    else
      vendor->event_destroy(handle->device, handle->driver);
    put_empty(handle);
  }
  return true;
}

unsigned mgpu_handles_count(enum mgpu_kind kind, bool live) {
  unsigned count = 0;
  mgpu_handles_lock();
  for (int backend = 0; backend < MGPU_BACKENDS && !live; ++backend)
    for (int device = 0; device < MGPU_MAX_DEVICES; ++device)
      count += pools[backend][device].count[kind];
  if (live)
    count = given[kind];
  mgpu_handles_unlock();
  return count;
}
