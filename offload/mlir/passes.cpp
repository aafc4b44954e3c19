//===- passes.cpp - The list of offload's passes --------------------------===//

#include "passes.h"

namespace offload {

void registerOffloadPasses() {
  registerPlaceBuffersPass();
  registerSerialLinalgPass();
  registerTileParallelPass();
  registerCheckInputPass();
  registerFinishKernelsPass();
  registerGpuToHostPass();
  registerHostToLLVMPass();
}

} // namespace offload
