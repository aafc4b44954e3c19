/* host.c: the CPU as a device. Images are shared objects (host_abi.h); work runs when it is put on a stream,
 * on the calling thread and the pool, so streams are in order and events always past. */
#include "host.h"

#include "error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kernel {
  struct kernel *next;
  const mgpuHostKernel *info; /* in the library */
  char name[];
};

struct module {
  void *library;
  int descriptor;
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
  int failure = mgpu_host_image_load(data, size, &module->library, &module->descriptor);
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
  mgpu_host_image_unload(module->library, module->descriptor);
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
  if (failure) {
    free(kernel);
    return failure;
  }
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out = kernel;
  return 0;
}

static int check_sizes(const struct kernel *kernel, const struct mgpu_launch *launch) {
  const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
  if (block[0] > MOST_THREADS || block[1] > MOST_THREADS || block[2] > MOST_THREADS_Z ||
      block[0] * block[1] * block[2] > MOST_THREADS)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" is launched with a block of (%u, %u, %u); the most are 1024 threads and 64 "
        "along z.",
        kernel->name, block[0], block[1], block[2]);
  if (grid[0] > MOST_BLOCKS_X || grid[1] > MOST_BLOCKS_YZ || grid[2] > MOST_BLOCKS_YZ)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" is launched with a grid of (%u, %u, %u); the most are (2147483647, 65535, "
        "65535).",
        kernel->name, grid[0], grid[1], grid[2]);
  if (cluster[0])
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "The kernel \"%s\" is launched with a cluster of (%u, %u, %u); the host "
                     "has no clusters.",
                     kernel->name, cluster[0], cluster[1], cluster[2]);
  return 0;
}

static int launch(int device, void *pointer, const struct mgpu_launch *launch) {
  (void)device;
  struct kernel *kernel = pointer;
  int failure = check_sizes(kernel, launch);
  if (failure)
    return failure;
  struct mgpu_host_work work = {.kernel = kernel->info, .blocks = 1};
  for (int i = 0; i < 3; ++i) {
    work.launch.grid[i] = launch->grid[i];
    work.launch.block[i] = launch->block[i];
    work.blocks *= launch->grid[i];
  }
  work.launch.dynamic_shared = launch->smem;
  work.launch.params = launch->params;
  failure = mgpu_host_pool_run(work.blocks, mgpu_host_run_blocks, &work);
  if (failure == MGPU_ERROR_MEMORY)
    mgpu_fail(failure,
              "Out of memory while the kernel \"%s\" ran: for its workgroup memory or its threads' frames.",
              kernel->name);
  else if (failure)
    mgpu_fail(failure, "The host kernel \"%s\" suspended a thread without saying what it waits for.",
              kernel->name);
  return failure;
}

/* Streams and events need an address each and nothing else. */
static char here;

static int create(int device, void **out) {
  (void)device;
  *out = &here;
  return 0;
}

static int nothing(int device, void *object) {
  (void)device;
  (void)object;
  return 0;
}

static int nothing_between(int device, void *object, void *other) {
  (void)other;
  return nothing(device, object);
}

static int alloc(int device, size_t size, void *stream, bool shared, void **out) {
  (void)device;
  (void)stream;
  (void)shared;
  enum { ALIGNMENT = 64 };
  if (posix_memalign(out, ALIGNMENT, size))
    return mgpu_fail(MGPU_ERROR_MEMORY, "The allocation of %zu bytes on host:0 failed: out of memory.", size);
  return 0;
}

static int release(int device, void *memory, void *stream, bool shared) {
  (void)device;
  (void)stream;
  (void)shared;
  free(memory);
  return 0;
}

static int copy(int device, void *to, const void *from, size_t size, void *stream) {
  (void)device;
  (void)stream;
  memmove(to, from, size);
  return 0;
}

/* A width known to the compiler makes each row one load and one store. */
#define COPY_ROWS(bytes)                                                                                     \
  case bytes:                                                                                                \
    for (size_t row = 0; row < height; ++row)                                                                \
      memcpy(target + row * to_pitch, source + row * from_pitch, bytes);                                     \
    break;

static int copy_rows(int device, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, void *stream) {
  (void)device;
  (void)stream;
  unsigned char *target = to;
  const unsigned char *source = from;
  switch (width) {
    COPY_ROWS(1)
    COPY_ROWS(2)
    COPY_ROWS(4)
    COPY_ROWS(8)
    COPY_ROWS(16)
  default:
    for (size_t row = 0; row < height; ++row)
      memmove(target + row * to_pitch, source + row * from_pitch, width);
  }
  return 0;
}

static int fill(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream) {
  (void)device;
  (void)stream;
  unsigned char *bytes = to;
  if (width == 1) {
    memset(to, (int)(value & 0xFF), count);
    return 0;
  }
  for (size_t i = 0; i < count; ++i)
    memcpy(bytes + i * width, &value, width); /* the low bytes: all our hosts are little-endian */
  return 0;
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
    .stream_create = create,
    .stream_destroy = nothing,
    .stream_sync = nothing,
    .stream_wait_event = nothing_between,
    .event_create = create,
    .event_destroy = nothing,
    .event_record = nothing_between,
    .event_sync = nothing,
    .alloc = alloc,
    .free = release,
    .memcpy = copy,
    .memcpy2d = copy_rows,
    .memset = fill,
    .host_register = host_register,
    .host_unregister = nothing,
    .after_fork = mgpu_host_pool_after_fork,
};
