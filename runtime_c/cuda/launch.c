/* launch.c: launches of kernels through the CUDA driver. */
#include "core/error.h"
#include "cuda/backend.h"

#include <string.h>

/* More than 48 KiB of workgroup memory must be asked for. What the driver is told belongs to its function,
 * which several kernels may stand for: it is all that the device has, always, so that nobody takes from
 * another. */
int mgpu_cuda_allow_shared(int index, struct mgpu_cuda_kernel *kernel, int bytes) {
  enum { WITHOUT_ASKING = 48 * 1024 };
  const int most_dynamic = mgpu_cuda_most_dynamic(index, kernel);
  if (bytes <= WITHOUT_ASKING - kernel->static_shared)
    return 0;
  if (bytes > most_dynamic)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "The kernel \"%s\" needs %lld bytes of workgroup memory (%d static, %d dynamic); %s allows %d.",
        kernel->common.name, (long long)kernel->static_shared + bytes, kernel->static_shared, bytes,
        mgpu_cuda_vendor.devices[index].chip, mgpu_cuda_devices[index].most_shared);
  if (__atomic_load_n(&kernel->asked, __ATOMIC_ACQUIRE))
    return 0;
  CUresult result = mgpu_cuda.cuFuncSetAttribute(
      kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most_dynamic);
  if (!result)
    __atomic_store_n(&kernel->asked, 1, __ATOMIC_RELEASE);
  return mgpu_cuda_check(index, result, "cuFuncSetAttribute", false);
}

static CUresult allow_wide_clusters(struct mgpu_cuda_kernel *kernel, const uint32_t cluster[3]) {
  enum { PORTABLE_CLUSTER = 8 };
  if ((uint64_t)cluster[0] * cluster[1] * cluster[2] <= PORTABLE_CLUSTER ||
      __atomic_load_n(&kernel->wide_clusters, __ATOMIC_RELAXED))
    return CUDA_SUCCESS;
  CUresult result =
      mgpu_cuda.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  if (!result)
    __atomic_store_n(&kernel->wide_clusters, 1, __ATOMIC_RELAXED);
  return result;
}

/* With clusters, or with all blocks at the same time. */
static CUresult launch_specially(struct mgpu_cuda_kernel *kernel, const struct mgpu_launch *launch) {
  const uint32_t *cluster = launch->cluster;
  CUlaunchAttribute attributes[3];
  unsigned count = 0;
  memset(attributes, 0, sizeof attributes);
  if (cluster[0]) {
    CUresult result = allow_wide_clusters(kernel, cluster);
    if (result)
      return result;
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = cluster[0];
    attributes[count].value.clusterDim.y = cluster[1];
    attributes[count++].value.clusterDim.z = cluster[2];
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    attributes[count++].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  if (launch->cooperative) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  CUlaunchConfig config = {
      launch->grid[0],  launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->smem,    launch->stream,  attributes,       count};
  return mgpu_cuda.cuLaunchKernelEx(&config, kernel->function, launch->params, NULL);
}

int mgpu_cuda_launch(int index, void *pointer, const struct mgpu_launch *launch) {
  enum { WITH_CLUSTERS = 9 };
  struct mgpu_cuda_kernel *kernel = pointer;
  if (launch->cluster[0] && mgpu_cuda_devices[index].major < WITH_CLUSTERS)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs clusters; %s has none.",
                     kernel->common.name, mgpu_cuda_vendor.devices[index].chip);
  bool special = launch->cluster[0] != 0 || launch->cooperative;
  if (special && !mgpu_cuda.cuLaunchKernelEx)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs %s; this CUDA driver has none.",
                     kernel->common.name, launch->cluster[0] ? "clusters" : "a cooperative launch");
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (failure)
    return failure;
  CUresult result = CUDA_SUCCESS;
  failure = mgpu_cuda_allow_shared(index, kernel, (int)launch->smem);
  if (!failure)
    result = special ? launch_specially(kernel, launch)
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
