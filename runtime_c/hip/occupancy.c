/* occupancy.c: how many blocks of a kernel a multiprocessor takes, as the HIP library reckons. */
#include "core/error.h"
#include "hip/backend.h"

int mgpu_hip_occupancy(int index, void *pointer, uint32_t smem, int *threads, int *blocks) {
  const struct mgpu_hip_kernel *kernel = pointer;
  if (!mgpu_hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor ||
      !mgpu_hip.hipModuleOccupancyMaxPotentialBlockSize)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "This HIP library does not tell the occupancy of kernels.");
  int previous;
  int failure = mgpu_hip_enter(index, &previous);
  if (failure)
    return failure;
  hipError_t result = hipSuccess;
  const char *call = "hipModuleOccupancyMaxPotentialBlockSize";
  int grid = 0;
  if (*threads == 0)
    result =
        mgpu_hip.hipModuleOccupancyMaxPotentialBlockSize(&grid, threads, kernel->function, smem, /*limit=*/0);
  if (!result) {
    call = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor";
    result =
        mgpu_hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel->function, *threads, smem);
  }
  mgpu_hip_leave(index, previous);
  return mgpu_hip_check(index, result, call, false);
}
