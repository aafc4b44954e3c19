//===- amd_kernels.cpp - What LLVM may rely on in kernels for AMD GPUs -----===//

#include "codegen/amd_kernels.h"

using namespace llvm;

namespace offload {

void denyRecursion(Module &module) {
  for (Function &function : module)
    if (function.getCallingConv() == CallingConv::AMDGPU_KERNEL)
      function.setDoesNotRecurse();
}

void splitBlockIds(Module &module) {
  for (Function &function : module)
    if (!function.hasFnAttribute("amdgpu-no-workgroup-id-y"))
      function.removeFnAttr("amdgpu-no-workgroup-id-z");
}

} // namespace offload
