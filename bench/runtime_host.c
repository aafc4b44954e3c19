/* runtime_host.c: what the calls of the mgpu runtime cost where the CPU is the device, next to what a C
 * program would do itself: call a function, malloc, memcpy, memset. Prints a line per measurement: round,
 * name, nanoseconds of one call of ours, of C's. See runtime.py. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/host_abi.h"
#include "mgpu.h"

enum { SMALL = 1024, MIDDLE = 256 << 10, LARGE = 64 << 20, WIDTH = 512 };

static void *functions[2], *stream, *library;
static uint64_t steps;
static int kernel, blocks, threads;
static size_t bytes;
static unsigned char *from, *to;

static void fail(const char *what) {
  fprintf(stderr, "runtime_host.c: %s: %s\n", what, mgpuGetLastErrorMessage());
  exit(1);
}

static void our_launch(void) {
  uint64_t value = steps;
  void *params[] = {&value};
  mgpuLaunchKernel(functions[kernel], blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL, 1);
  mgpuStreamSynchronize(stream);
}

/* The kernel's function on one core. */
static void plain_call(void) {
  static const char *const names[] = {"empty.info", "count.info"};
  static const mgpuHostKernel *infos[2];
  if (!infos[kernel])
    infos[kernel] = dlsym(library, names[kernel]);
  uint64_t value = steps;
  void *params[] = {&value};
  const mgpuHostLaunch launch = {.grid = {(uint32_t)blocks, 1, 1},
                                 .block = {(uint32_t)threads, 1, 1},
                                 .cluster = {1, 1, 1},
                                 .params = params};
  infos[kernel]->blocks(&launch, NULL, 0, (uint64_t)blocks);
}

static void our_memory(void) {
  unsigned char *memory = mgpuMemAlloc(bytes, stream, false);
  __asm__ volatile("" ::"r"(memory) : "memory");
  mgpuMemFree(memory, stream);
}

static void plain_memory(void) {
  void *memory = aligned_alloc(64, bytes);
  __asm__ volatile("" ::"r"(memory) : "memory");
  free(memory);
}

/* A program that allocates per call: memory, written once, given back. */
static void our_buffer(void) {
  unsigned char *memory = mgpuMemAlloc(bytes, stream, false);
  mgpuMemset8(memory, 1, bytes, stream);
  mgpuMemFree(memory, stream);
}

static void plain_buffer(void) {
  void *memory = aligned_alloc(64, bytes);
  memset(memory, 1, bytes);
  __asm__ volatile("" ::"r"(memory) : "memory");
  free(memory);
}

static void our_copy(void) { mgpuMemcpy(to, from, bytes, stream); }

static void plain_copy(void) {
  memcpy(to, from, bytes);
  __asm__ volatile("" ::: "memory");
}

static void our_set32(void) { mgpuMemset32(to, 0x3F800000u, bytes / 4, stream); }

static void our_set64(void) { mgpuMemset64(to, 0x3FF0000000000000u, bytes / 8, stream); }

static void plain_set(void) {
  memset(to, 1, bytes);
  __asm__ volatile("" ::: "memory");
}

/* Half the columns of a matrix with rows of WIDTH bytes. */
static void our_rows(void) {
  const int64_t sizes[] = {(int64_t)bytes / WIDTH, WIDTH / 2}, strides[] = {WIDTH, 1};
  mgpuMemcpyStrided(to, strides, from, strides, sizes, 2, 1, stream);
}

static void plain_rows(void) {
  for (size_t row = 0; row < bytes / WIDTH; ++row)
    memcpy(to + row * WIDTH, from + row * WIDTH, WIDTH / 2);
  __asm__ volatile("" ::: "memory");
}

static const struct measurement {
  const char *name;
  void (*ours)(void), (*plain)(void);
  int calls, kernel, blocks, threads;
  uint64_t steps;
  size_t bytes;
} measurements[] = {
    {"launch, empty, 1 block", our_launch, plain_call, 20000, 0, 1, 1, 0, 0},
    {"launch, 1 block of 256", our_launch, plain_call, 20000, 1, 1, 256, 256, 0},
    {"launch, empty, 16 blocks", our_launch, plain_call, 5000, 0, 16, 256, 0, 0},
    {"launch, empty, 65535 blocks", our_launch, plain_call, 5000, 0, 65535, 256, 0, 0},
    {"launch of 10 us in 64 blocks", our_launch, plain_call, 1000, 1, 64, 256, 1100, 0},
    {"launch of 100 us in 64 blocks", our_launch, plain_call, 200, 1, 64, 256, 11000, 0},
    {"launch of 2 blocks of 1 ms", our_launch, plain_call, 5, 1, 2, 256, 7000000, 0},
    {"alloc, free of 1 KiB", our_memory, plain_memory, 20000, 0, 0, 0, 0, SMALL},
    {"alloc, free of 256 KiB", our_memory, plain_memory, 5000, 0, 0, 0, 0, MIDDLE},
    {"alloc, free of 64 MiB", our_memory, plain_memory, 500, 0, 0, 0, 0, LARGE},
    {"alloc, set, free of 1 KiB", our_buffer, plain_buffer, 20000, 0, 0, 0, 0, SMALL},
    {"alloc, set, free of 256 KiB", our_buffer, plain_buffer, 200, 0, 0, 0, 0, MIDDLE},
    {"alloc, set, free of 64 MiB", our_buffer, plain_buffer, 2, 0, 0, 0, 0, LARGE},
    {"memcpy of 1 KiB", our_copy, plain_copy, 20000, 0, 0, 0, 0, SMALL},
    {"memcpy of 256 KiB", our_copy, plain_copy, 500, 0, 0, 0, 0, MIDDLE},
    {"memcpy of 64 MiB", our_copy, plain_copy, 2, 0, 0, 0, 0, LARGE},
    {"memset of 32 bits, 256 KiB", our_set32, plain_set, 500, 0, 0, 0, 0, MIDDLE},
    {"memset of 64 bits, 64 MiB", our_set64, plain_set, 2, 0, 0, 0, 0, LARGE},
    {"rows of 256 bytes, 256 KiB", our_rows, plain_rows, 500, 0, 0, 0, 0, MIDDLE},
    {"rows of 256 bytes, 64 MiB", our_rows, plain_rows, 2, 0, 0, 0, 0, LARGE},
};

/* Nanoseconds of one call. */
static double time_of(void (*call)(void), int calls) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < calls; ++i)
    call();
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec)) / calls;
}

/* IMAGES is a container with the kernels as an image for the host; KERNELS the same as a library. */
static void open_runtime(const char *images, const char *kernels) {
  FILE *file = fopen(images, "rb");
  if (!file)
    fail(images);
  static char data[1 << 18] __attribute__((aligned(16)));
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  mgpuBackendUse("host");
  stream = mgpuStreamCreate();
  void *module = mgpuModuleLoad(data, size);
  functions[0] = mgpuModuleGetFunction(module, "empty");
  functions[1] = mgpuModuleGetFunction(module, "count");
  library = dlopen(kernels, RTLD_NOW);
  from = aligned_alloc(4096, LARGE);
  to = aligned_alloc(4096, LARGE);
  if (mgpuGetLastError() || !functions[0] || !functions[1] || !library || !from || !to)
    fail("the runtime");
  memset(from, 1, LARGE);
  memset(to, 1, LARGE);
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "runtime_host IMAGES KERNELS ROUNDS\n");
    return 2;
  }
  open_runtime(arguments[1], arguments[2]);
  for (int round = 0; round < atoi(arguments[3]); ++round)
    for (size_t i = 0; i < sizeof measurements / sizeof *measurements; ++i) {
      const struct measurement *one = &measurements[i];
      kernel = one->kernel;
      blocks = one->blocks;
      threads = one->threads;
      steps = one->steps;
      bytes = one->bytes;
      double plain = time_of(one->plain, one->calls), ours = time_of(one->ours, one->calls);
      if (mgpuGetLastError())
        fail(one->name);
      printf("%d\t%s\t%.3f\t%.3f\n", round, one->name, ours, plain);
    }
  return 0;
}
