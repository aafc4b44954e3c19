/* runtime_kernels.c: the host kernels that runtime_host.c launches, written against host/host_abi.h. */
#include <stddef.h>

#include "host/host_abi.h"

#define KERNEL(name, parameters, sizes)                                                                      \
  __attribute__((visibility("default")))                                                                     \
  const mgpuHostKernel name##_info __asm__(#name ".info") = {.abi_version = MGPU_HOST_ABI_VERSION,           \
                                                             .params = parameters,                           \
                                                             .blocks = name,                                 \
                                                             .param_sizes = sizes,                           \
                                                             .warp_size = 32}

static void empty(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)launch;
  (void)shared;
  __asm__ volatile("" ::"r"(first), "r"(last));
}

KERNEL(empty, 0, NULL);

/* Each block counts to *params[0]: about that many times 0.15 ns. */
static void count(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)shared;
  uint64_t steps = *(const uint64_t *)launch->params[0];
  for (uint64_t block = first; block < last; ++block)
    for (uint64_t i = 0; i < steps; ++i)
      __asm__ volatile("" ::"r"(i));
}

static const uint32_t count_sizes[] = {8};
KERNEL(count, 1, count_sizes);
