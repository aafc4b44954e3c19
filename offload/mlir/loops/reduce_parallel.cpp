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
      replaceReduction(loop);
    }
  }
};

} // namespace

void registerReduceParallelPass() { PassRegistration<ReduceParallel>(); }

} // namespace offload
