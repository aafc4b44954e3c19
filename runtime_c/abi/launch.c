/* launch.c: kernel launches of the ABI. */
#include "abi/module.h"
#include "abi/stream.h"
#include "core/error.h"
#include "core/thread.h"

#include <stdlib.h>

/* The kernel behind a slot, made at its first launch; it and its module live as long as the artifact. */
static struct mgpu_kernel *of_slot(mgpuKernelSlot *slot) {
  if (!slot) {
    mgpu_fail(MGPU_ERROR_INVALID, "A launch has NULL as its kernel.");
    return NULL;
  }
  struct mgpu_kernel *kernel = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
  if (kernel)
    return kernel;
  mgpuModuleSlot *owner = slot->module;
  if (!owner || !slot->name) {
    mgpu_fail(MGPU_ERROR_INVALID, "The slot of a kernel has NULL as its %s.", owner ? "name" : "module");
    return NULL;
  }
  mgpu_lock();
  struct mgpu_module *module = owner->state;
  if (!module) {
    module = calloc(1, sizeof *module);
    if (module) {
      module->begin = owner->images_begin;
      module->end = owner->images_end;
      module->name = owner->name;
      module->jit_level = -1;
    }
    owner->state = module;
  }
  kernel = slot->state;
  if (module && !kernel) {
    kernel = calloc(1, sizeof *kernel);
    if (kernel) {
      kernel->module = module;
      kernel->name = slot->name;
      __atomic_store_n(&slot->state, (void *)kernel, __ATOMIC_RELEASE);
    }
  }
  mgpu_unlock();
  if (!kernel)
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", slot->name);
  return kernel;
}

/* Three sizes, each at least `least`. False when one is not a 32-bit count. */
static bool take(uint32_t to[3], intptr_t x, intptr_t y, intptr_t z, intptr_t least) {
  const intptr_t from[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    if (from[i] < least || (uintptr_t)from[i] > UINT32_MAX)
      return false;
    to[i] = (uint32_t)from[i];
  }
  return true;
}

/* Empty arrays make empty grids. The drivers refuse them; a loop over nothing is nothing. */
static bool is_empty(const uint32_t grid[3]) { return !grid[0] || !grid[1] || !grid[2]; }

static void start(struct mgpu_kernel *kernel, struct mgpu_launch *launch, int32_t smem, void *stream,
                  int32_t wait) {
  struct mgpu_place place;
  if (smem < 0) {
    mgpu_fail(MGPU_ERROR_INVALID, "The kernel \"%s\" is launched with %d bytes of dynamic workgroup memory.",
              kernel->name, smem);
    return;
  }
  if (mgpu_module_backend(kernel->module) < 0 || mgpu_stream_place(stream, &place))
    return;
  void *handle = mgpu_kernel_handle(kernel, place.backend, place.device);
  if (!handle)
    return;
  if (launch->cluster[0] | launch->cluster[1] | launch->cluster[2]) {
    bool one = true;
    for (int i = 0; i < 3; ++i) {
      launch->cluster[i] += launch->cluster[i] == 0;
      one = one && launch->cluster[i] == 1;
    }
    for (int i = 0; i < 3 && one; ++i)
      launch->cluster[i] = 0;
  }
  launch->smem = (uint32_t)smem;
  launch->stream = place.driver;
  launch->own_stream = place.own;
  const struct mgpu_backend *backend = mgpu_backends[place.backend];
  if (backend->launch(place.device, handle, launch) || wait == MGPU_WAIT_NOT)
    return;
  bool later = wait == MGPU_WAIT_LATER && !stream;
  bool behind_others = !stream && mgpu_thread()->unwaited.work;
  if (later || behind_others)
    mgpu_stream_unwaited(kernel->name);
  if (later)
    return;
  backend->stream_sync(place.device, place.driver);
  if (behind_others)
    mgpu_stream_waited();
}

static void bad_size(const struct mgpu_kernel *kernel, const char *what, intptr_t x, intptr_t y, intptr_t z) {
  mgpu_fail(MGPU_ERROR_INVALID, "The kernel \"%s\" is launched with a %s of (%lld, %lld, %lld).",
            kernel->name, what, (long long)x, (long long)y, (long long)z);
}

/* Three sizes from three arguments each. */
struct sizes {
  intptr_t grid[3], block[3], cluster[3];
};

static void launch_slot(mgpuKernelSlot *slot, const struct sizes *sizes, int32_t smem, void *stream,
                        void **params, int32_t wait) {
  const intptr_t *grid = sizes->grid, *block = sizes->block, *cluster = sizes->cluster;
  struct mgpu_kernel *kernel = of_slot(slot);
  if (!kernel)
    return;
  struct mgpu_launch launch = {.params = params};
  if (!take(launch.grid, grid[0], grid[1], grid[2], 0))
    bad_size(kernel, "grid", grid[0], grid[1], grid[2]);
  else if (is_empty(launch.grid)) {
    if (wait != MGPU_WAIT_NOT && wait != MGPU_WAIT_LATER)
      mgpuStreamSynchronize(stream);
  } else if (!take(launch.block, block[0], block[1], block[2], 1))
    bad_size(kernel, "block", block[0], block[1], block[2]);
  else if (!take(launch.cluster, cluster[0], cluster[1], cluster[2], 0))
    bad_size(kernel, "cluster", cluster[0], cluster[1], cluster[2]);
  else
    start(kernel, &launch, smem, stream, wait);
}

void mgpuKernelLaunch(mgpuKernelSlot *slot, intptr_t gridX, intptr_t gridY, intptr_t gridZ, intptr_t blockX,
                      intptr_t blockY, intptr_t blockZ, intptr_t clusterX, intptr_t clusterY,
                      intptr_t clusterZ, int32_t smem, void *stream, void **params, size_t paramsCount,
                      int32_t wait) {
  (void)paramsCount; /* the kernel knows its parameters */
  const struct sizes sizes = {
      {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, {clusterX, clusterY, clusterZ}};
  if (!mgpu_pending())
    launch_slot(slot, &sizes, smem, stream, params, wait);
  /* After a failure, too, what compiled code has left to this wait has to end. */
  if (wait != MGPU_WAIT_NOT && wait != MGPU_WAIT_LATER && !stream && mgpu_pending())
    mgpuWaitForLater();
}

int32_t mgpuKernelOccupancy(mgpuKernelSlot *slot, int32_t smem, int32_t *threads, int32_t *blocks) {
  struct mgpu_place place;
  if (!threads || !blocks)
    return mgpu_fail(MGPU_ERROR_INVALID, "mgpuKernelOccupancy needs places for its answers.");
  *blocks = 0;
  struct mgpu_kernel *kernel = mgpu_pending() ? NULL : of_slot(slot);
  if (!kernel)
    return mgpu_pending();
  if (smem < 0 || *threads < 0)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The kernel \"%s\" is asked about with blocks of %d threads and %d bytes.", kernel->name,
                     *threads, smem);
  if (mgpu_module_backend(kernel->module) < 0 || mgpu_stream_place(NULL, &place))
    return mgpu_pending();
  void *handle = mgpu_kernel_handle(kernel, place.backend, place.device);
  if (!handle)
    return mgpu_pending();
  return mgpu_backends[place.backend]->occupancy(place.device, handle, (uint32_t)smem, threads, blocks);
}

static void raw_launch(void *function, const intptr_t cluster[3], const intptr_t grid[3],
                       const intptr_t block[3], bool cooperative, int32_t smem, void *stream, void **params,
                       void **extra) {
  struct mgpu_kernel *kernel = function;
  if (mgpu_pending())
    return;
  struct mgpu_launch launch = {.params = params, .cooperative = cooperative};
  if (!kernel)
    mgpu_fail(MGPU_ERROR_INVALID, "A launch has NULL as its kernel.");
  else if (!kernel->module)
    mgpu_fail(MGPU_ERROR_INVALID, "A launch has a kernel of a module that has been unloaded.");
  else if (extra)
    mgpu_fail(MGPU_ERROR_UNSUPPORTED,
              "The kernel \"%s\" is launched with packed arguments (extra); only params work.", kernel->name);
  else if (!take(launch.grid, grid[0], grid[1], grid[2], 0))
    bad_size(kernel, "grid", grid[0], grid[1], grid[2]);
  else if (is_empty(launch.grid))
    return;
  else if (!take(launch.block, block[0], block[1], block[2], 1))
    bad_size(kernel, "block", block[0], block[1], block[2]);
  else if (!take(launch.cluster, cluster[0], cluster[1], cluster[2], 0))
    bad_size(kernel, "cluster", cluster[0], cluster[1], cluster[2]);
  else
    start(kernel, &launch, smem, stream, MGPU_WAIT_NOT);
}

void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY, intptr_t gridZ, intptr_t blockX,
                      intptr_t blockY, intptr_t blockZ, int32_t smem, void *stream, void **params,
                      void **extra, size_t paramsCount) {
  (void)paramsCount;
  raw_launch(function, (const intptr_t[3]){0, 0, 0}, (const intptr_t[3]){gridX, gridY, gridZ},
             (const intptr_t[3]){blockX, blockY, blockZ}, false, smem, stream, params, extra);
}

void mgpuLaunchClusterKernel(void *function, intptr_t clusterX, intptr_t clusterY, intptr_t clusterZ,
                             intptr_t gridX, intptr_t gridY, intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                             intptr_t blockZ, int32_t smem, void *stream, void **params, void **extra) {
  raw_launch(function, (const intptr_t[3]){clusterX, clusterY, clusterZ},
             (const intptr_t[3]){gridX, gridY, gridZ}, (const intptr_t[3]){blockX, blockY, blockZ}, false,
             smem, stream, params, extra);
}

void mgpuLaunchKernelCooperative(void *function, intptr_t gridX, intptr_t gridY, intptr_t gridZ,
                                 intptr_t clusterX, intptr_t clusterY, intptr_t clusterZ, intptr_t blockX,
                                 intptr_t blockY, intptr_t blockZ, int32_t smem, void *stream, void **params,
                                 void **extra) {
  raw_launch(function, (const intptr_t[3]){clusterX, clusterY, clusterZ},
             (const intptr_t[3]){gridX, gridY, gridZ}, (const intptr_t[3]){blockX, blockY, blockZ}, true,
             smem, stream, params, extra);
}
