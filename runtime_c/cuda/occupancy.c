/* occupancy.c: how many blocks of a kernel a multiprocessor takes, as the CUDA driver reckons. */
#include "core/error.h"
#include "cuda/backend.h"

int mgpu_cuda_occupancy(int index, void *pointer, uint32_t smem, int *threads, int *blocks) {
  struct mgpu_cuda_kernel *kernel = pointer;
  if (!mgpu_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor || !mgpu_cuda.cuOccupancyMaxPotentialBlockSize)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "This CUDA driver does not tell the occupancy of kernels.");
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (failure)
    return failure;
  CUresult result = CUDA_SUCCESS;
  const char *call = "cuOccupancyMaxPotentialBlockSize";
  int grid = 0;
  failure = mgpu_cuda_allow_shared(index, kernel, (int)smem);
  if (!failure && *threads == 0)
    result =
        mgpu_cuda.cuOccupancyMaxPotentialBlockSize(&grid, threads, kernel->function, NULL, smem, /*limit=*/0);
  if (!failure && !result) {
    call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
    result = mgpu_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel->function, *threads, smem);
  }
  mgpu_cuda_leave(index, previous);
  return failure ? failure : mgpu_cuda_check(index, result, call, false);
}
