//===- packed_ids.cpp - Block ids that share a register, on AMD GPUs -------===//

#include "codegen/packed_ids.h"

using namespace llvm;

namespace offload {

void splitBlockIds(Module &module) {
  for (Function &function : module)
    if (!function.hasFnAttribute("amdgpu-no-workgroup-id-y"))
      function.removeFnAttr("amdgpu-no-workgroup-id-z");
}

} // namespace offload
