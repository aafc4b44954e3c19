/* cuda_launch.c: launches of kernels through the CUDA driver. */
#include "cuda_backend.h"
#include "error.h"

#include <string.h>

/* More than 48 KiB of workgroup memory must be asked for. */
static int allow_shared(int index, struct mgpu_cuda_kernel *kernel, int bytes) {
  enum { WITHOUT_ASKING = 48 * 1024 };
  if (bytes <= WITHOUT_ASKING - kernel->static_shared ||
      bytes <= __atomic_load_n(&kernel->dynamic_shared, __ATOMIC_RELAXED))
    return 0;
  if (mgpu_cuda.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   bytes)) {
    int most = 0;
    mgpu_cuda.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                   mgpu_cuda_devices[index].ordinal);
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" needs %d bytes of workgroup memory (%d static, %d dynamic); %s allows %d.",
        kernel->common.name, kernel->static_shared + bytes, kernel->static_shared, bytes,
        mgpu_cuda_vendor.devices[index].chip, most);
  }
  __atomic_store_n(&kernel->dynamic_shared, bytes, __ATOMIC_RELAXED);
  return 0;
}

static CUresult launch_clusters(struct mgpu_cuda_kernel *kernel, const struct mgpu_launch *launch) {
  enum { PORTABLE_CLUSTER = 8 };
  const uint32_t *cluster = launch->cluster;
  if ((uint64_t)cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER &&
      !__atomic_load_n(&kernel->wide_clusters, __ATOMIC_RELAXED)) {
    CUresult result = mgpu_cuda.cuFuncSetAttribute(kernel->function,
                                                   CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result)
      return result;
    __atomic_store_n(&kernel->wide_clusters, 1, __ATOMIC_RELAXED);
  }
  CUlaunchAttribute attributes[2];
  memset(attributes, 0, sizeof attributes);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = cluster[0];
  attributes[0].value.clusterDim.y = cluster[1];
  attributes[0].value.clusterDim.z = cluster[2];
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  attributes[1].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  CUlaunchConfig config = {
      launch->grid[0],  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->smem,    launch->stream,  attributes,       2};
  return mgpu_cuda.cuLaunchKernelEx(&config, kernel->function, launch->params, NULL);
}

int mgpu_cuda_launch(int index, void *pointer, const struct mgpu_launch *launch) {
  struct mgpu_cuda_kernel *kernel = pointer;
  bool clusters = launch->cluster[0] != 0;
  if (clusters && !mgpu_cuda.cuLaunchKernelEx)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs clusters; this CUDA driver has none.",
                     kernel->common.name);
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (failure)
    return failure;
  CUresult result = CUDA_SUCCESS;
  failure = allow_shared(index, kernel, (int)launch->smem);
  if (!failure)
    result = clusters ? launch_clusters(kernel, launch)
                      : mgpu_cuda.cuLaunchKernel(kernel->function, launch->grid[0], launch->grid[1],
                                                 launch->grid[2], launch->block[0], launch->block[1],
                                                 launch->block[2], launch->smem, launch->stream,
                                                 launch->params, NULL);
  mgpu_cuda_leave(index, previous);
  if (!failure && !result)
    mgpu_vendor_launched(&mgpu_cuda_vendor, index, &kernel->common);
  return result ? mgpu_vendor_launch_failed(&mgpu_cuda_vendor, index, result, kernel->common.name, launch)
                : failure;
}
