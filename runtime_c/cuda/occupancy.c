/* occupancy.c: how many blocks of a kernel a multiprocessor takes, as the CUDA driver reckons. */
#include "core/error.h"
#include "cuda/backend.h"

/* The size of blocks that keeps the device busiest, and how many a multiprocessor takes. Called in the
 * device's context; the failure is the driver's, of *call. */
static CUresult ask(CUfunction function, size_t smem, int *threads, int *blocks, const char **call) {
  CUresult result = CUDA_SUCCESS;
  int grid = 0;
  if (*threads == 0) {
    *call = "cuOccupancyMaxPotentialBlockSize";
    result = mgpu_cuda.cuOccupancyMaxPotentialBlockSize(&grid, threads, function, NULL, smem, /*limit=*/0);
  }
  if (result)
    return result;
  *call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
  return mgpu_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, *threads, smem);
}

int mgpu_cuda_occupancy(int index, void *pointer, uint32_t smem, int *threads, int *blocks) {
  struct mgpu_cuda_kernel *kernel = pointer;
  if (!mgpu_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor || !mgpu_cuda.cuOccupancyMaxPotentialBlockSize)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "This CUDA driver does not tell the occupancy of kernels.");
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (failure)
    return failure;
  /* More than the device has is no error, and no size of block is best: the one without that memory will do.
   */
  bool fits = (int)smem <= mgpu_cuda_most_dynamic(index, kernel);
  CUresult result = CUDA_SUCCESS;
  const char *call = "";
  if (fits)
    failure = mgpu_cuda_allow_shared(index, kernel, (int)smem);
  if (!failure)
    result = ask(kernel->function, fits ? smem : 0, threads, blocks, &call);
  mgpu_cuda_leave(index, previous);
  if (!fits)
    *blocks = 0;
  return failure ? failure : mgpu_cuda_check(index, result, call, false);
}
