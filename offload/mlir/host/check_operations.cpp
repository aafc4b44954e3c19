//===- check_operations.cpp - Operations of kernels in host code ------------===//

#include "device/vendor_rules.h"
#include "host/lowering.h"

using namespace mlir;

namespace offload {

static bool isForKernels(Operation *op) {
  return isa<gpu::AllReduceOp, gpu::BarrierOp, gpu::BlockDimOp, gpu::BlockIdOp, gpu::ClusterBlockIdOp,
             gpu::ClusterDimBlocksOp, gpu::ClusterDimOp, gpu::ClusterIdOp, gpu::DynamicSharedMemoryOp,
             gpu::GlobalIdOp, gpu::GridDimOp, gpu::LaneIdOp, gpu::NumSubgroupsOp, gpu::PrintfOp,
             gpu::RotateOp, gpu::ShuffleOp, gpu::SubgroupBroadcastOp, gpu::SubgroupIdOp,
             gpu::SubgroupMmaComputeOp, gpu::SubgroupMmaConstantMatrixOp, gpu::SubgroupMmaElementwiseOp,
             gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp, gpu::SubgroupReduceOp,
             gpu::SubgroupSizeOp, gpu::ThreadIdOp>(op);
}

LogicalResult refuseKernelOperations(ModuleOp module) {
  bool refused = false;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op))
      return WalkResult::skip();
    StringRef owner = ownerOf(op->getName().getDialectNamespace());
    refused |= !owner.empty() || isForKernels(op);
    if (!owner.empty())
      op->emitError("'")
          << op->getName() << "' is an operation of " << owner
          << ", for kernels, and this is host code: use it in a kernel, and build that for those "
             "alone";
    else if (isForKernels(op))
      op->emitError("'")
          << op->getName()
          << "' is for kernels, and this is host code: put it in a gpu.launch or a gpu.func; a "
             "function that kernels alone call must be private";
    return WalkResult::advance();
  });
  return failure(refused);
}

} // namespace offload
