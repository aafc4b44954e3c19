//===- passes.cpp - The list of offload's passes --------------------------===//

#include "passes.h"

namespace offload {

void registerOffloadPasses() {
  registerInlineAsyncPass();
  registerRepairLoweredPass();
  registerPlaceBuffersPass();
  registerPlainDeclarationsPass();
  registerPrepareComplexPass();
  registerPrepareMathPass();
  registerPrepareMemoryPass();
  registerPrepareSmallFloatsPass();
  registerPrepareProductsPass();
  registerPrepareVectorsPass();
  registerPrepareDevicePass();
  registerRepairPasses();
  registerGroupLaunchesPass();
  registerGatherKernelsPass();
  registerMarkKernelsPass();
  registerMaskedReductionsPass();
  registerMissingLoweringsPass();
  registerMissingTensorsPass();
  registerCarriedMemoryPass();
  registerInlineCallsPass();
  registerChainPasses();
  registerInlineConstantsPass();
  registerNameChangedPass();
  registerPrivateBuffersPass();
  registerPrivateLoopsPass();
  registerMapForallsPass();
  registerProgramGlobalsPass();
  registerSeparateTensorsPass();
  registerStructureTensorsPass();
  registerSerialFunctionsPass();
  registerCollapseLinalgPass();
  registerOrderLoopsPass();
  registerReduceLinalgPass();
  registerFindPlacesPass();
  registerFuseRowsPass();
  registerReduceRowsPass();
  registerBlockTilesPass();
  registerRowProductsPass();
  registerThreadTilesPass();
  registerTransposeTilesPass();
  registerReduceParallelPass();
  registerSerialLinalgPass();
  registerShapeNestsPass();
  registerTileParallelPass();
  registerFoldTransposesPass();
  registerFuseElementwisePass();
  registerTensorPasses();
  registerLibraryNamesPasses();
  registerEqualSizesPass();
  registerKnownSizesPass();
  registerEliminateEmptyTensorsPass();
  registerFreeEarlyPass();
  registerCheckInputPass();
  registerCheckMemoryPass();
  registerCheckDevicePass();
  registerDescriptorPasses();
  registerAlignTilesPass();
  registerJoinStepsPass();
  registerChooseProductsPass();
  registerSpreadFragmentsPass();
  registerLowerNvgpuPass();
  registerCheckLoweredPass();
  registerTransformPasses();
  registerKeepApartPass();
  registerBlockMemoryPass();
  registerLoopMemoryPass();
  registerFinishKernelsPass();
  registerEqualKernelsPasses();
  registerGpuToHostPass();
  registerNumberSpacesPass();
  registerHostToLLVMPass();
  registerPlainSpacesPass();
  registerWaitForUnusedTokensPass();
  registerSettlePositionsPass();
}

} // namespace offload
