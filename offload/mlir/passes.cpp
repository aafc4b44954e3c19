//===- passes.cpp - The list of offload's passes --------------------------===//

#include "passes.h"

namespace offload {

void registerOffloadPasses() {
  registerIntegerCmpXchgPass();
  registerPlaceBuffersPass();
  registerPlainDeclarationsPass();
  registerRepairPasses();
  registerSerialLinalgPass();
  registerTileParallelPass();
  registerCheckInputPass();
  registerFinishKernelsPass();
  registerGpuToHostPass();
  registerHostToLLVMPass();
}

} // namespace offload
