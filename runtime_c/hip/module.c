/* module.c: loads images into the HIP library, finds their kernels and launches them. */
#include "core/error.h"
#include "hip/backend.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether the code says that the image and not the call is at fault. */
static bool of_image(hipError_t result) {
  return result == hipErrorInvalidImage || result == hipErrorNoBinaryForGpu ||
         result == hipErrorInvalidKernelFile;
}

int mgpu_hip_module_load(int index, const void *data, size_t size, int jit_level, void **out) {
  (void)jit_level;
  enum mgpu_blob blob = mgpu_image_blob(data, size);
  if (blob != MGPU_BLOB_AMD_ELF && blob != MGPU_BLOB_AMD_BUNDLE)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "HIP loads code objects (hsaco), not text or other images.");
  /* HIP may read the image later. */
  struct mgpu_vendor_module *module = mgpu_vendor_module_new(data, size, true);
  if (!module)
    return MGPU_ERROR_MEMORY;
  int previous;
  int failure = mgpu_hip_enter(index, &previous);
  if (!failure) {
    hipModule_t handle = NULL;
    int mode = mgpu_hip_outside_capture();
    hipError_t result = mgpu_hip.hipModuleLoadData(&handle, module->copy);
    mgpu_hip_back_to_capture(mode);
    mgpu_hip_leave(index, previous);
    module->handle = handle;
    if (of_image(result)) {
      mgpu_hip_vendor.after_failure();
      failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The HIP library cannot load the image on %s: %s (%d).",
                          mgpu_hip_vendor.devices[index].chip, mgpu_hip.hipGetErrorName(result), result);
    } else {
      failure = mgpu_hip_check(index, result, "hipModuleLoadData", false);
    }
  }
  if (failure)
    mgpu_vendor_module_free(&mgpu_hip_vendor, module);
  else
    *out = module;
  return failure;
}

static int unload(int device, hipModule_t handle) { MGPU_HIP_RELEASE(device, hipModuleUnload, (handle)); }

int mgpu_hip_module_unload(int device, void *pointer) {
  struct mgpu_vendor_module *module = pointer;
  int failure = unload(device, module->handle);
  mgpu_vendor_module_free(&mgpu_hip_vendor, module);
  return failure;
}

int mgpu_hip_kernel_get(int index, void *pointer, const char *name, void **out) {
  struct mgpu_vendor_module *module = pointer;
  struct mgpu_hip_kernel *kernel = mgpu_vendor_kernel_new(sizeof *kernel, name);
  if (!kernel)
    return MGPU_ERROR_MEMORY;
  int previous;
  int failure = mgpu_hip_enter(index, &previous);
  if (!failure) {
    int mode = mgpu_hip_outside_capture(); /* the driver may load the kernel only now */
    hipError_t result = mgpu_hip.hipModuleGetFunction(&kernel->function, module->handle, name);
    mgpu_hip_back_to_capture(mode);
    mgpu_hip_leave(index, previous);
    char what[192];
    snprintf(what, sizeof what, "hipModuleGetFunction for the kernel \"%.128s\"", name);
    failure = mgpu_hip_check(index, result, what, false);
  }
  if (failure) {
    free(kernel);
    return failure;
  }
  mgpu_vendor_kernel_keep(module, &kernel->common);
  *out = kernel;
  return 0;
}

/* The packet of a launch counts threads, not blocks, in 32 bits; HIP says no more than that a configuration
 * is invalid. */
static int check_threads(const struct mgpu_hip_kernel *kernel, const struct mgpu_launch *launch) {
  for (int i = 0; i < 3; ++i) {
    uint64_t threads = (uint64_t)launch->grid[i] * launch->block[i];
    if (threads > UINT32_MAX)
      return mgpu_fail(
          MGPU_ERROR_INVALID,
          "The kernel \"%s\" is launched with %llu threads along %c (%u blocks of %u); on HIP there are "
          "fewer than 2^32 along each axis: launch it for parts of the array.",
          kernel->common.name, (unsigned long long)threads, "xyz"[i], launch->grid[i], launch->block[i]);
  }
  return 0;
}

int mgpu_hip_launch(int index, void *pointer, const struct mgpu_launch *launch) {
  struct mgpu_hip_kernel *kernel = pointer;
  if (check_threads(kernel, launch))
    return MGPU_ERROR_INVALID;
  if (launch->cluster[0])
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED, "The kernel \"%s\" needs clusters; HIP has none.",
                     kernel->common.name);
  if (launch->cooperative && !mgpu_hip.hipModuleLaunchCooperativeKernel)
    return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                     "The kernel \"%s\" needs a cooperative launch; this HIP has none.", kernel->common.name);
  int previous;
  int failure = mgpu_hip_enter(index, &previous);
  if (failure)
    return failure;
  const uint32_t *grid = launch->grid, *block = launch->block;
  hipError_t result =
      launch->cooperative
          ? mgpu_hip.hipModuleLaunchCooperativeKernel(kernel->function, grid[0], grid[1], grid[2], block[0],
                                                      block[1], block[2], launch->smem, launch->stream,
                                                      launch->params)
          : mgpu_hip.hipModuleLaunchKernel(kernel->function, grid[0], grid[1], grid[2], block[0], block[1],
                                           block[2], launch->smem, launch->stream, launch->params, NULL);
  mgpu_hip_leave(index, previous);
  if (!result)
    mgpu_vendor_launched(&mgpu_hip_vendor, index, &kernel->common);
  return result ? mgpu_vendor_launch_failed(&mgpu_hip_vendor, index, result, kernel->common.name, launch) : 0;
}
