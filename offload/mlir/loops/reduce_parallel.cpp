//===- reduce_parallel.cpp - offload-reduce-parallel ----------------------===//
//
// A kernel has no results, so convert-parallel-loops-to-gpu takes no scf.parallel that has some. This pass
// writes outermost ones as loops without (reduction.cpp).
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace offload {
namespace {

/// Why a loop's results cannot be left in memory by a kernel.
std::optional<StringRef> whyNot(scf::ParallelOp loop) {
  if (!llvm::all_of(loop.getResultTypes(), [](Type type) {
        return MemRefType::isValidElementType(type) && !isa<BaseMemRefType>(type);
      }))
    return "of what no array holds";
  bool mapped =
      loop->walk([](Operation *op) {
            return op->hasAttr(gpu::getMappingAttrName()) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (mapped)
    return "and a mapping of its own to blocks and threads";
  return std::nullopt;
}

/// What a combining region uses of the loop's body; null where it is nothing.
Operation *userOfBody(scf::ParallelOp loop) {
  for (Region &region : cast<scf::ReduceOp>(loop.getBody()->getTerminator()).getReductions()) {
    Operation *found = nullptr;
    region.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (operand.getParentBlock() == loop.getBody())
          found = op;
    });
    if (found)
      return found;
  }
  return nullptr;
}

struct ReduceParallel : public PassWrapper<ReduceParallel, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceParallel)

  StringRef getArgument() const final { return "offload-reduce-parallel"; }
  StringRef getDescription() const final { return "Write scf.parallel with results as loops without"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (scf::ParallelOp loop : outermostParallel(getOperation())) {
      forgetUnfitMapping(loop); // before anything looks at it
      if (loop.getNumReductions() == 0)
        continue;
      if (std::optional<StringRef> why = whyNot(loop)) {
        loop.emitOpError("with a reduction ")
            << *why
            << " cannot become a kernel; use gpu.launch with gpu.all_reduce, or scf.for where the loop "
               "belongs to the host";
        return signalPassFailure();
      }
      // Partial results are combined where there is no such value. Constants are the same there.
      if (userOfBody(loop))
        moveLoopInvariantCode(loop);
      if (Operation *user = userOfBody(loop)) {
        user->emitOpError(
            "combines results with a value of one iteration; use what is the same in all of them, from "
            "in front of the loop");
        return signalPassFailure();
      }
      replaceReduction(loop);
    }
  }
};

} // namespace

void registerReduceParallelPass() { PassRegistration<ReduceParallel>(); }

} // namespace offload
