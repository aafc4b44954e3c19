/* api.c: the function table that an artifact exports. */
#include "mgpu.h"

/* Exported even where the mgpu functions are hidden. */
__attribute__((visibility("default"))) const mgpuApi *offload_api(uint32_t abi_version);

const mgpuApi *offload_api(uint32_t abi_version) {
  static const mgpuApi table = {
      .abi_version = MGPU_ABI_VERSION,
      .size = sizeof(mgpuApi),
#define MGPU_FUNCTION(ret, name, params) .name = name,
#include "mgpu_functions.def"
#undef MGPU_FUNCTION
  };
  return abi_version == MGPU_ABI_VERSION ? &table : NULL;
}
