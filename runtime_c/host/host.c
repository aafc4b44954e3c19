/* host.c: the CPU as a device. Images are shared objects (host/host_abi.h); work runs when it is put on a
 * stream, on the calling thread and the pool, unless host/schedule.h puts it off. */
#include "host/host.h"

#include "core/error.h"
#include "core/thread.h"
#include "host/schedule.h"
#include "host/transfer.h"
#include "host/turns.h"
#include "sparse/sparse.h"
#include "trace/trace.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kernel {
  struct kernel *next;
  uint64_t cost;              /* of a block, as host/split.c keeps it */
  const mgpuHostKernel *info; /* in the library */
  char name[];
};

struct module {
  void *library;
  struct kernel *kernels; /* under mgpu_lock */
};

/* The most that CUDA allows; kernels that work here then work there. */
enum { MOST_THREADS = 1024, MOST_THREADS_Z = 64, MOST_BLOCKS_X = 0x7FFFFFFF, MOST_BLOCKS_YZ = 65535 };

static int device_count(void) { return mgpu_host_elf_machine() >= 0; }

static const char *why_absent(void) { return "host kernels are not supported on this kind of CPU"; }

static int device_info(int device, mgpuDeviceInfo *info) {
  (void)device;
  memset(info, 0, sizeof *info);
  strcpy(info->backend, "host");
  mgpu_host_cpu_name(info->name, sizeof info->name);
  snprintf(info->chip, sizeof info->chip, "%s", mgpu_host_chip());
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  info->warp_size = MGPU_HOST_WARP_SIZE;
  info->multiprocessors = mgpu_host_pool_width();
  return 0;
}

static int image_rank(int device, const struct mgpu_image *image) {
  (void)device;
  if (mgpu_elf_machine(image->data, image->size) != mgpu_host_elf_machine())
    return 0;
  return mgpu_host_arch_rank(image->arch);
}

static int module_load(int device, const void *data, size_t size, int jit_level, void **out) {
  (void)device;
  (void)jit_level;
  struct module *module = calloc(1, sizeof *module);
  if (!module)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module.");
  int failure = mgpu_host_image_load(data, size, &module->library);
  if (failure) {
    free(module);
    return failure;
  }
  *out = module;
  return 0;
}

static int module_unload(int device, void *pointer) {
  (void)device;
  struct module *module = pointer;
  mgpu_host_schedule_drain(); /* its kernels may be among what is put off */
  dlclose(module->library);
  for (struct kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
  free(module);
  return 0;
}

static int kernel_get(int device, void *pointer, const char *name, void **out) {
  (void)device;
  struct module *module = pointer;
  size_t length = strlen(name);
  struct kernel *kernel = calloc(1, sizeof *kernel + length + sizeof ".info");
  if (!kernel)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
  memcpy(kernel->name, name, length);
  memcpy(kernel->name + length, ".info", sizeof ".info");
  kernel->info = dlsym(module->library, kernel->name);
  kernel->name[length] = 0;
  int failure = 0;
  if (!kernel->info)
    failure = mgpu_fail(MGPU_ERROR_INVALID, "The host image has no kernel \"%s\".", name);
  else if (kernel->info->abi_version != MGPU_HOST_ABI_VERSION)
    failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE,
                        "The host kernel \"%s\" has ABI version %u; this runtime runs version %u.", name,
                        kernel->info->abi_version, MGPU_HOST_ABI_VERSION);
  else if (!kernel->info->blocks == !kernel->info->thread)
    failure =
        mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host kernel \"%s\" must have either blocks or thread.", name);
  else if (kernel->info->warp_size != 32 && kernel->info->warp_size != 64)
    failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The host kernel \"%s\" has warps of %u threads, not 32 or 64.",
                        name, kernel->info->warp_size);
  if (failure) {
    free(kernel);
    return failure;
  }
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out = kernel;
  return 0;
}

/* As on GPUs, the clusters that a kernel is built for are those of every launch. */
static const uint32_t *cluster_of(const struct kernel *kernel, const struct mgpu_launch *launch) {
  return launch->cluster[0] ? launch->cluster : kernel->info->cluster;
}

static int check_launch(const struct kernel *kernel, const struct mgpu_launch *launch) {
  const uint32_t *grid = launch->grid, *block = launch->block, *cluster = cluster_of(kernel, launch);
  if (block[0] > MOST_THREADS || block[1] > MOST_THREADS || block[2] > MOST_THREADS_Z ||
      block[0] * block[1] * block[2] > MOST_THREADS)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" is launched with a block of (%u, %u, %u); the most are 1024 threads and 64 "
        "along z.",
        kernel->name, block[0], block[1], block[2]);
  if (kernel->info->max_threads && block[0] * block[1] * block[2] > kernel->info->max_threads)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" is launched with a block of (%u, %u, %u); it was built for at most %llu threads.",
        kernel->name, block[0], block[1], block[2], (unsigned long long)kernel->info->max_threads);
  const uint32_t *known = kernel->info->block;
  if (known[0] && (block[0] != known[0] || block[1] != known[1] || block[2] != known[2]))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The kernel \"%s\" is launched with a block of (%u, %u, %u); it was built for blocks of "
                     "(%u, %u, %u), its known_block_size.",
                     kernel->name, block[0], block[1], block[2], known[0], known[1], known[2]);
  if (grid[0] > MOST_BLOCKS_X || grid[1] > MOST_BLOCKS_YZ || grid[2] > MOST_BLOCKS_YZ)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" is launched with a grid of (%u, %u, %u); the most are (2147483647, 65535, "
        "65535).",
        kernel->name, grid[0], grid[1], grid[2]);
  if (launch->cooperative && (uint64_t)grid[0] * grid[1] * grid[2] > 1)
    return mgpu_fail(
        MGPU_ERROR_UNSUPPORTED,
        "The kernel \"%s\" is launched with all of %llu blocks at the same time; the CPU runs them one "
        "after the other.",
        kernel->name, (unsigned long long)grid[0] * grid[1] * grid[2]);
  const uint32_t *built = kernel->info->cluster;
  if (built[0] && (cluster[0] != built[0] || cluster[1] != built[1] || cluster[2] != built[2]))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The kernel \"%s\" is launched with clusters of (%u, %u, %u); it was built for clusters "
                     "of (%u, %u, %u), its known_cluster_size.",
                     kernel->name, cluster[0], cluster[1], cluster[2], built[0], built[1], built[2]);
  if (cluster[0] &&
      (grid[0] % cluster[0] || !cluster[1] || grid[1] % cluster[1] || !cluster[2] || grid[2] % cluster[2]))
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The kernel \"%s\" is launched with clusters of (%u, %u, %u), which do not divide the "
                     "grid of (%u, %u, %u).",
                     kernel->name, cluster[0], cluster[1], cluster[2], grid[0], grid[1], grid[2]);
  if (kernel->info->params && !launch->params)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "The kernel \"%s\" has %u parameters and is launched with NULL in their place.",
                     kernel->name, kernel->info->params);
  return 0;
}

/* A thread of the pool runs one block at a time, whatever memory that takes; the larger the blocks, the less
 * is spent on each. */
static int occupancy(int device, void *pointer, uint32_t smem, int *threads, int *blocks) {
  const mgpuHostKernel *info = ((const struct kernel *)pointer)->info;
  const uint32_t *known = info->block;
  uint64_t most = info->max_threads && info->max_threads < MOST_THREADS ? info->max_threads : MOST_THREADS;
  uint64_t only = (uint64_t)known[0] * known[1] * known[2];
  (void)device;
  (void)smem;
  if (*threads == 0)
    *threads = (int)(only ? only : most);
  *blocks = (uint64_t)*threads <= most && (!only || (uint64_t)*threads == only);
  return 0;
}

struct launch_work {
  struct kernel *kernel;
  struct mgpu_host_work work;
};

/* A part of a launch_work's job, with its place in the trace. */
static int traced_blocks(void *work, uint64_t first, uint64_t last) {
  const struct launch_work *launch = (const void *)((const char *)work - offsetof(struct launch_work, work));
  uint64_t begin = mgpu_trace_now();
  int failure = mgpu_host_run_blocks(work, first, last);
  mgpu_trace_host_blocks(launch->kernel->name, first, last, begin);
  return failure;
}

static int run_launch(void *data, struct mgpu_text *why) {
  struct launch_work *launch = data;
  int failure = mgpu_host_split(launch->work.blocks, mgpu_trace_on ? traced_blocks : mgpu_host_run_blocks,
                                &launch->work, &launch->kernel->cost);
  if (failure == MGPU_ERROR_MEMORY)
    mgpu_text_add(
        why, "Out of memory while the kernel \"%s\" ran: for its workgroup memory or its threads' frames.",
        launch->kernel->name);
  else if (launch->work.failed)
    mgpu_text_add(why, "The kernel \"%s\" failed an assertion in block (%u, %u, %u), thread (%u, %u, %u): %s",
                  launch->kernel->name, launch->work.at_block[0], launch->work.at_block[1],
                  launch->work.at_block[2], launch->work.at_thread[0], launch->work.at_thread[1],
                  launch->work.at_thread[2], launch->work.message);
  else if (failure)
    mgpu_text_add(why, "The host kernel \"%s\" suspended a thread without saying what it waits for.",
                  launch->kernel->name);
  return failure;
}

static int run_put_off(void *data, struct mgpu_text *why) {
  struct launch_work *launch = data;
  launch->work.turn = mgpu_thread()->turn; /* for the blocks, whichever threads run them */
  return run_launch(launch, why);
}

/* The values are the caller's until the launch returns, so they go along. */
static int put_launch(void *stream, const struct launch_work *launch, void **params) {
  enum { ALIGNMENT = 64 }; /* of any parameter's type */
  const mgpuHostKernel *info = launch->kernel->info;
  size_t head = sizeof *launch + info->params * sizeof(void *), size = head;
  for (uint32_t i = 0; i < info->params; ++i)
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + info->param_sizes[i];
  struct launch_work *copied = mgpu_host_schedule_data(size);
  if (!copied)
    return MGPU_ERROR_MEMORY;
  *copied = *launch;
  copied->work.launch.params = (void **)(copied + 1);
  size_t at = head;
  for (uint32_t i = 0; i < info->params; ++i) {
    at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    copied->work.launch.params[i] = memcpy((unsigned char *)copied + at, params[i], info->param_sizes[i]);
    at += info->param_sizes[i];
  }
  return mgpu_host_schedule_put(stream, run_put_off, copied);
}

static int launch(int device, void *pointer, const struct mgpu_launch *launch) {
  (void)device;
  struct kernel *kernel = pointer;
  int failure = check_launch(kernel, launch);
  if (failure)
    return failure;
  struct launch_work work = {.kernel = kernel, .work = {.kernel = kernel->info, .blocks = 1}};
  const uint32_t *cluster = cluster_of(kernel, launch);
  for (int i = 0; i < 3; ++i) {
    work.work.launch.grid[i] = launch->grid[i];
    work.work.launch.block[i] = launch->block[i];
    work.work.launch.cluster[i] = cluster[0] ? cluster[i] : 1;
    work.work.blocks *= launch->grid[i];
  }
  work.work.launch.dynamic_shared = launch->smem;
  work.work.launch.params = launch->params;
  work.work.launch.fail = mgpu_host_assertion_failed;
  work.work.launch.memory = mgpu_host_memory;
  work.work.launch.large = mgpu_host_uncached_from();
  if (mgpu_host_schedule_on())
    return put_launch(launch->stream, &work, launch->params);
  char buffer[1024];
  struct mgpu_text why = {buffer, sizeof buffer, 0};
  struct mgpu_host_turn turn;
  mgpu_host_turn_begin(&turn, launch->own_stream ? NULL : launch->stream);
  work.work.turn = turn.stream ? &turn : mgpu_thread()->turn;
  failure = run_launch(&work, &why);
  mgpu_host_turn_end(&turn);
  return failure ? mgpu_fail(failure, "%s", buffer) : 0;
}

static int nothing(int device, void *object) {
  (void)device;
  (void)object;
  return 0;
}

static int stream_device(void **stream, int current) {
  (void)stream;
  return current;
}

static int host_register(int device, void *memory, size_t size) {
  (void)size;
  return nothing(device, memory);
}

const struct mgpu_backend mgpu_backend_host = {
    .name = "host",
    .target = "host",
    .is_cpu = true,
    .device_count = device_count,
    .why_absent = why_absent,
    .device_info = device_info,
    .image_rank = image_rank,
    .module_load = module_load,
    .module_unload = module_unload,
    .kernel_get = kernel_get,
    .launch = launch,
    .occupancy = occupancy,
    .stream_create = mgpu_host_stream_create,
    .stream_destroy = mgpu_host_stream_destroy,
    .stream_sync = mgpu_host_stream_sync,
    .stream_wait_event = mgpu_host_stream_wait_event,
    .stream_device = stream_device,
    .event_create = mgpu_host_event_create,
    .event_destroy = mgpu_host_event_destroy,
    .event_record = mgpu_host_event_record,
    .event_sync = mgpu_host_event_sync,
    .alloc = mgpu_host_alloc,
    .free = mgpu_host_free,
    .memcpy = mgpu_host_memcpy,
    .memcpy2d = mgpu_host_memcpy2d,
    .memset = mgpu_host_memset,
    .host_register = host_register,
    .host_unregister = nothing,
    .sparse = &mgpu_host_sparse,
    .after_fork = mgpu_host_pool_after_fork,
};
