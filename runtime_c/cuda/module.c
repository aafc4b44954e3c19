/* module.c: loads images into the CUDA driver and finds their kernels. */
#include "core/error.h"
#include "cuda/backend.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether the code says that the image and not the call is at fault. */
static bool of_image(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

static CUresult load(CUmodule *module, const void *data, bool text, int jit_level, char *log, size_t size) {
  CUjit_option options[3] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                             CU_JIT_OPTIMIZATION_LEVEL};
  void *values[3] = {log, (void *)(uintptr_t)(size - 1), (void *)(uintptr_t)(jit_level < 0 ? 4 : jit_level)};
  return mgpu_cuda.cuModuleLoadDataEx(module, data, text ? 3 : 0, text ? options : NULL,
                                      text ? values : NULL);
}

int mgpu_cuda_module_load(int index, const void *data, size_t size, int jit_level, void **out) {
  bool text = mgpu_image_blob(data, size) == MGPU_BLOB_TEXT;
  char log[640] = "";
  /* Text needs a terminator, code alignment. */
  struct mgpu_vendor_module *module = mgpu_vendor_module_new(data, size, text || (uintptr_t)data % 8);
  if (!module)
    return MGPU_ERROR_MEMORY;
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (!failure) {
    CUmodule handle = NULL;
    CUstreamCaptureMode mode = mgpu_cuda_outside_capture();
    CUresult result = load(&handle, module->copy ? module->copy : data, text, jit_level, log, sizeof log);
    mgpu_cuda_back_to_capture(mode);
    mgpu_cuda_leave(index, previous);
    module->handle = handle;
    if (of_image(result) || (result && *log)) {
      const char *name = mgpu_cuda_vendor.code_name(result);
      failure = mgpu_fail(MGPU_ERROR_BAD_IMAGE, "The CUDA driver cannot load the image on %s: %s (%d)%s%s.",
                          mgpu_cuda_vendor.devices[index].chip, name ? name : "unknown", result,
                          *log ? ": " : "", log);
    } else {
      failure = mgpu_cuda_check(index, result, "cuModuleLoadDataEx", false);
    }
  }
  free(module->copy); /* the driver has made its own */
  module->copy = NULL;
  if (failure)
    mgpu_vendor_module_free(&mgpu_cuda_vendor, module);
  else
    *out = module;
  return failure;
}

static int unload(int device, CUmodule handle) { MGPU_CUDA_RELEASE(device, cuModuleUnload, (handle)); }

int mgpu_cuda_module_unload(int device, void *pointer) {
  struct mgpu_vendor_module *module = pointer;
  int failure = unload(device, module->handle);
  mgpu_vendor_module_free(&mgpu_cuda_vendor, module);
  return failure;
}

int mgpu_cuda_kernel_get(int index, void *pointer, const char *name, void **out) {
  struct mgpu_vendor_module *module = pointer;
  struct mgpu_cuda_kernel *kernel = mgpu_vendor_kernel_new(sizeof *kernel, name);
  if (!kernel)
    return MGPU_ERROR_MEMORY;
  CUcontext previous;
  int failure = mgpu_cuda_enter(index, &previous);
  if (!failure) {
    const char *call = "cuModuleGetFunction";
    CUstreamCaptureMode mode = mgpu_cuda_outside_capture(); /* the driver may load the kernel only now */
    CUresult result = mgpu_cuda.cuModuleGetFunction(&kernel->function, module->handle, name);
    if (result == CUDA_SUCCESS) {
      call = "cuFuncGetAttribute";
      result = mgpu_cuda.cuFuncGetAttribute(&kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                            kernel->function);
    }
    mgpu_cuda_back_to_capture(mode);
    mgpu_cuda_leave(index, previous);
    char what[192];
    snprintf(what, sizeof what, "%s for the kernel \"%.128s\"", call, name);
    failure = mgpu_cuda_check(index, result, what, false);
  }
  if (failure) {
    free(kernel);
    return failure;
  }
  mgpu_vendor_kernel_keep(module, &kernel->common);
  *out = kernel;
  return 0;
}
