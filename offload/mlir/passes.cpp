//===- passes.cpp - The list of offload's passes --------------------------===//

#include "passes.h"

namespace offload {

void registerOffloadPasses() {
  registerInlineAsyncPass();
  registerIntegerCmpXchgPass();
  registerPlaceBuffersPass();
  registerPlainDeclarationsPass();
  registerPrepareDevicePass();
  registerRepairPasses();
  registerSerialLinalgPass();
  registerTileParallelPass();
  registerCheckInputPass();
  registerFinishKernelsPass();
  registerGpuToHostPass();
  registerHostToLLVMPass();
}

} // namespace offload
