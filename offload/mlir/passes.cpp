//===- passes.cpp - The list of offload's passes --------------------------===//

#include "passes.h"

namespace offload {

void registerOffloadPasses() {
  registerInlineAsyncPass();
  registerIntegerCmpXchgPass();
  registerPlaceBuffersPass();
  registerPlainDeclarationsPass();
  registerRepairPasses();
  registerSerialLinalgPass();
  registerTileParallelPass();
  registerCheckInputPass();
  registerCheckDevicePass();
  registerDescriptorPasses();
  registerCheckLoweredPass();
  registerFinishKernelsPass();
  registerGpuToHostPass();
  registerHostToLLVMPass();
}

} // namespace offload
