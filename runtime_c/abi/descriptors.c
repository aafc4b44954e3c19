/* descriptors.c: descriptors of tiled tensors, which TMA instructions read. A backend without them has no
 * slot for them.
 *
 * A descriptor is 128 bytes that say all about a tensor's place and shape, and never change. Each is kept in
 * device memory once: a function that makes one per call makes the same one each time. It goes when the
 * memory that it tells of is freed here; of memory that another library owns nobody hears when that is, and
 * so such descriptors stay. */
#include "abi/descriptors.h"

#include "abi/stream.h"
#include "core/backend.h"
#include "core/error.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 5 };

struct kept {
  struct kept *next;
  int backend, device;
  const char *tensor; /* what it tells of begins there */
  void *memory;
  struct mgpu_descriptor descriptor;
};

enum { BUCKETS = 256 };
static struct kept *table[BUCKETS]; /* by contents; under mgpu_lock, as are the others */
static size_t count;                /* atomic */

/* Bytes of an element by the ABI's code of its type. */
static const unsigned char element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static int encode(const struct mgpu_place *place, struct mgpu_descriptor *out,
                  const struct mgpu_tensor *tensor) {
  const struct mgpu_backend *backend = mgpu_backends[place->backend];
  if (!backend->describe)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "The backend \"%s\" has no tensor descriptors: a program that makes them runs where its "
                     "kernels do, on devices with TMA.",
                     backend->name);
  return backend->describe(place->device, tensor, out);
}

void mgpuTensorMapEncodeTiled(void *tensorMap, int32_t dataType, uint32_t tensorRank, void *globalAddress,
                              const uint64_t *globalDim, const uint64_t *globalStrides,
                              const uint32_t *boxDim, const uint32_t *elementStrides, int32_t interleave,
                              int32_t swizzle, int32_t l2Promotion, int32_t oobFill) {
  struct mgpu_place place;
  struct mgpu_descriptor descriptor;
  struct mgpu_tensor tensor = {dataType,       tensorRank, globalAddress, globalDim,   globalStrides, boxDim,
                               elementStrides, interleave, swizzle,       l2Promotion, oobFill};
  if (mgpu_pending())
    return;
  if (!tensorMap || !globalDim || (!globalStrides && tensorRank > 1) || !boxDim || !elementStrides) {
    mgpu_fail(MGPU_ERROR_INVALID,
              "mgpuTensorMapEncodeTiled needs a place for its answer and all four lists.");
    return;
  }
  if (mgpu_stream_place(NULL, &place) || encode(&place, &descriptor, &tensor))
    return;
  memcpy(tensorMap, &descriptor, sizeof descriptor);
}

static struct kept **bucket(const struct mgpu_descriptor *descriptor) {
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof descriptor->words / sizeof *descriptor->words; ++i)
    hash = (hash ^ descriptor->words[i]) * 0x9E3779B97F4A7C15u;
  return &table[hash >> 56];
}

/* The device's copy of a descriptor, or NULL. Called under mgpu_lock. */
static void *kept_copy(const struct mgpu_place *place, const struct mgpu_descriptor *descriptor) {
  for (struct kept *entry = *bucket(descriptor); entry; entry = entry->next)
    if (entry->backend == place->backend && entry->device == place->device &&
        memcmp(&entry->descriptor, descriptor, sizeof *descriptor) == 0)
      return entry->memory;
  return NULL;
}

/* A copy in device memory, which is there when this returns; NULL after mgpu_fail. Not under mgpu_lock: the
 * stream's kernels are waited for, and these may wait for what needs that lock. */
static void *copy_to_device(const struct mgpu_place *place, const struct mgpu_descriptor *descriptor) {
  const struct mgpu_backend *backend = mgpu_backends[place->backend];
  void *memory = NULL;
  if (backend->alloc(place->device, sizeof *descriptor, place->driver, false, &memory))
    return NULL;
  if (backend->memcpy(place->device, memory, descriptor, sizeof *descriptor, place->driver) == 0 &&
      backend->stream_sync(place->device, place->driver) == 0)
    return memory;
  backend->free(place->device, memory, place->driver, false);
  return NULL;
}

/* The device's copy of a descriptor, made where there is none; NULL after mgpu_fail. */
static void *keep(const struct mgpu_place *place, const struct mgpu_descriptor *descriptor,
                  const char *tensor) {
  mgpu_lock();
  void *memory = kept_copy(place, descriptor);
  mgpu_unlock();
  if (memory)
    return memory;
  struct kept *entry = malloc(sizeof *entry);
  if (!entry) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a tensor descriptor.");
    return NULL;
  }
  void *made = copy_to_device(place, descriptor);
  if (!made) {
    free(entry);
    return NULL;
  }
  mgpu_lock();
  memory = kept_copy(place, descriptor); /* another thread may have been as quick */
  if (!memory) {
    struct kept **first = bucket(descriptor);
    *entry = (struct kept){*first, place->backend, place->device, tensor, made, *descriptor};
    *first = entry;
    __atomic_store_n(&count, count + 1, __ATOMIC_RELAXED);
    memory = made;
  }
  mgpu_unlock();
  if (memory != made) {
    free(entry);
    mgpu_backends[place->backend]->free(place->device, made, place->driver, false);
  }
  return memory;
}

void *mgpuTensorMapEncodeTiledMemref(int64_t tensorRank, void *rankedDescriptor, int64_t dataType,
                                     int64_t interleave, int64_t swizzle, int64_t l2Promotion,
                                     int64_t oobFill, int64_t *inputBoxDims) {
  struct head {
    char *allocated, *aligned;
    int64_t offset;
    int64_t sizes_and_strides[];
  };
  struct mgpu_place place;
  struct mgpu_descriptor descriptor;
  if (mgpu_pending())
    return NULL;
  if (!rankedDescriptor || !inputBoxDims) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuTensorMapEncodeTiledMemref needs a memref and the sizes of a box.");
    return NULL;
  }
  if (tensorRank < 1 || tensorRank > MOST_DIMENSIONS || dataType < 0 ||
      dataType >= (int64_t)sizeof element_bytes) {
    mgpu_fail(MGPU_ERROR_INVALID,
              "A tensor descriptor has 1 to 5 dimensions and a known type, not %lld and type %lld.",
              (long long)tensorRank, (long long)dataType);
    return NULL;
  }
  const struct head *head = rankedDescriptor;
  const int64_t *sizes = head->sizes_and_strides, *strides = sizes + tensorRank;
  int64_t bytes = element_bytes[dataType], start, distance;
  if (strides[tensorRank - 1] != 1 && sizes[tensorRank - 1] != 1) {
    mgpu_fail(
        MGPU_ERROR_INVALID,
        "A tensor descriptor needs neighbouring elements in its last dimension; their distance is %lld.",
        (long long)strides[tensorRank - 1]);
    return NULL;
  }
  /* The driver counts dimensions from the innermost one, whose stride it does not ask for. */
  uint64_t dims[MOST_DIMENSIONS], distances[MOST_DIMENSIONS] = {0};
  uint32_t box[MOST_DIMENSIONS], ones[MOST_DIMENSIONS];
  for (int64_t i = 0; i < tensorRank; ++i) {
    int64_t from = tensorRank - 1 - i;
    if (inputBoxDims[from] < 0 || inputBoxDims[from] > UINT32_MAX) {
      mgpu_fail(MGPU_ERROR_INVALID, "A tensor descriptor's box is %lld wide in dimension %lld.",
                (long long)inputBoxDims[from], (long long)from);
      return NULL;
    }
    dims[i] = (uint64_t)sizes[from];
    box[i] = (uint32_t)inputBoxDims[from];
    ones[i] = 1;
    if (__builtin_mul_overflow(strides[from], bytes, &distance)) {
      mgpu_fail(MGPU_ERROR_INVALID, "A tensor descriptor's stride is %lld in dimension %lld.",
                (long long)strides[from], (long long)from);
      return NULL;
    }
    if (i > 0)
      distances[i - 1] = (uint64_t)distance;
  }
  if (__builtin_mul_overflow(head->offset, bytes, &start)) {
    mgpu_fail(MGPU_ERROR_INVALID, "A tensor descriptor's offset is %lld.", (long long)head->offset);
    return NULL;
  }
  struct mgpu_tensor tensor = {(int32_t)dataType,
                               (uint32_t)tensorRank,
                               (char *)((uintptr_t)head->aligned + (uintptr_t)start),
                               dims,
                               distances,
                               box,
                               ones,
                               (int32_t)interleave,
                               (int32_t)swizzle,
                               (int32_t)l2Promotion,
                               (int32_t)oobFill};
  if (mgpu_stream_place(NULL, &place) || encode(&place, &descriptor, &tensor))
    return NULL;
  return keep(&place, &descriptor, tensor.address);
}

void mgpu_descriptors_drop(const struct mgpu_place *place, const void *memory, size_t size) {
  if (!mgpu_descriptors_count())
    return;
  mgpu_lock();
  for (size_t i = 0; i < BUCKETS; ++i)
    for (struct kept **link = &table[i]; *link;) {
      struct kept *entry = *link;
      uintptr_t offset = (uintptr_t)entry->tensor - (uintptr_t)memory;
      struct mgpu_place there = *place; /* a device may have described another's memory */
      if (entry->backend != place->backend || offset >= size ||
          (entry->device != place->device && mgpu_stream_to_release(place->backend, entry->device, &there))) {
        link = &entry->next;
        continue;
      }
      mgpu_backends[there.backend]->free(there.device, entry->memory, there.driver, false);
      *link = entry->next;
      free(entry);
      __atomic_store_n(&count, count - 1, __ATOMIC_RELAXED);
    }
  mgpu_unlock();
}

size_t mgpu_descriptors_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }
