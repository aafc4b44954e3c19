/* kernels.c: a host image written by hand against host_abi.h, for the tests of the Python
 * runtime. */
#include "host/host_abi.h"

#include <stdbool.h>

#define ARGUMENT(type, index) (*(type *)launch->params[index])
#define KERNEL(name, ...)                                                                                    \
  static const uint32_t name##_sizes[] = {__VA_ARGS__};                                                      \
  extern const mgpuHostKernel name##_info __asm__(#name ".info");                                            \
  __attribute__((visibility("default")))                                                                     \
  const mgpuHostKernel name##_info = {.abi_version = MGPU_HOST_ABI_VERSION,                                  \
                                      .params = sizeof name##_sizes / sizeof *name##_sizes,                  \
                                      .blocks = name,                                                        \
                                      .warp_size = MGPU_HOST_WARP_SIZE,                                      \
                                      .param_sizes = name##_sizes}

/* y[i] = a * x[i] + y[i]; parameters: a, x as 5 words, y as 5 words. */
static void saxpy(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)shared;
  float a = ARGUMENT(float, 0);
  float *x = ARGUMENT(float *, 2) + ARGUMENT(int64_t, 3), *y = ARGUMENT(float *, 7) + ARGUMENT(int64_t, 8);
  for (uint64_t i = first * launch->block[0]; i < last * launch->block[0]; ++i)
    if ((int64_t)i < ARGUMENT(int64_t, 4))
      y[(int64_t)i * ARGUMENT(int64_t, 10)] += a * x[(int64_t)i * ARGUMENT(int64_t, 5)];
}
KERNEL(saxpy, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8);

/* Writes what it was launched with: grid, block, dynamic bytes; then its scalars. */
static void report(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)shared, (void)last;
  if (first != 0)
    return;
  double *out = ARGUMENT(double *, 1);
  for (int i = 0; i < 3; ++i) {
    out[i] = launch->grid[i];
    out[3 + i] = launch->block[i];
  }
  out[6] = launch->dynamic_shared;
  out[7] = ARGUMENT(bool, 5);
  out[8] = ARGUMENT(int8_t, 6);
  out[9] = (double)ARGUMENT(_Float16, 7);
  out[10] = ARGUMENT(uint16_t, 8);
  out[11] = ((double *)launch->params[9])[0];
  out[12] = ((double *)launch->params[9])[1];
  out[13] = ARGUMENT(double, 10);
}
KERNEL(report, 8, 8, 8, 8, 8, 1, 1, 2, 2, 16, 8);
