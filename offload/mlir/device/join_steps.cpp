//===- join_steps.cpp - offload-join-steps ----------------------------------===//
//
// The steps of a thread's loop that do not depend on each other (kIndependentSteps; loops/thread_steps.cpp
// makes them): all of them load, then all compute, then all store. Otherwise a load waits for the store of
// the step before, which may be to the same address for all that a compiler knows. For GPUs; the block at the
// end of the data, whose threads have fewer steps, goes through the loop.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Clones the loop's operations, each for all steps before the next one.
void takeAtOnce(OpBuilder &b, scf::ForOp loop, int64_t step, int64_t steps) {
  SmallVector<IRMapping> maps(steps);
  llvm::SmallPtrSet<Value, 16> varies{loop.getInductionVar()};
  for (auto [k, map] : llvm::enumerate(maps)) {
    Value offset = arith::ConstantIndexOp::create(b, loop.getLoc(), int64_t(k) * step);
    map.map(loop.getInductionVar(),
            b.createOrFold<arith::AddIOp>(loop.getLoc(), loop.getLowerBound(), offset));
  }
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool same = isPure(&op) && llvm::none_of(op.getOperands(), [&](Value v) { return varies.contains(v); });
    Operation *first = nullptr;
    for (IRMapping &map : maps) {
      if (same && first)
        map.map(op.getResults(), first->getResults());
      else
        first = b.clone(op, map);
    }
    if (!same)
      varies.insert_range(op.getResults());
  }
}

void join(scf::ForOp loop) {
  auto count = loop->getAttrOfType<IntegerAttr>(kIndependentSteps);
  loop->removeAttr(kIndependentSteps);
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  int64_t steps = count.getInt();
  if (!step || loop.getNumResults() || steps < 2)
    return;
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  if (getConstantIntValue(loop.getUpperBound()) == *step * steps) { // in every block
    takeAtOnce(b, loop, *step, steps);
    loop.erase();
    return;
  }
  Value whole = arith::ConstantIndexOp::create(b, loc, *step * steps);
  Value hasAll = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, loop.getUpperBound(), whole);
  auto either = scf::IfOp::create(b, loc, hasAll, /*withElseRegion=*/true);
  b.setInsertionPointToStart(either.thenBlock());
  takeAtOnce(b, loop, *step, steps);
  loop->moveBefore(either.elseBlock()->getTerminator());
  // One block runs it: LLVM would make a second set of steps of it.
  auto yes = BoolAttr::get(b.getContext(), true);
  auto asItIs = LLVM::LoopUnrollAttr::get(b.getContext(), yes, {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation",
                LLVM::LoopAnnotationAttr::get(b.getContext(), {}, {}, {}, asItIs, {}, {}, {}, {}, {}, {}, {},
                                              {}, {}, {}, {}));
}

struct JoinSteps : public PassWrapper<JoinSteps, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinSteps)

  StringRef getArgument() const final { return "offload-join-steps"; }
  StringRef getDescription() const final { return "Take independent steps of a thread's loop at once"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(kIndependentSteps))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      join(loop);
  }
};

} // namespace

void registerJoinStepsPass() { PassRegistration<JoinSteps>(); }

} // namespace offload
