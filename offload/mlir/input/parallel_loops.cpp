//===- parallel_loops.cpp - Parallel loops of host code ---------------------===//

#include "input/parallel_loops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace offload {

SmallVector<scf::ParallelOp> outermostParallel(Operation *root) {
  SmallVector<scf::ParallelOp> loops;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp, gpu::LaunchOp>(op))
      return WalkResult::skip();
    auto loop = dyn_cast<scf::ParallelOp>(op);
    if (!loop)
      return WalkResult::advance();
    loops.push_back(loop);
    return WalkResult::skip();
  });
  return loops;
}

} // namespace offload
