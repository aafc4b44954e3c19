//===- join_steps.cpp - offload-join-steps ----------------------------------===//
//
// A loop with one load on its way is as slow as memory is far. Here a thread takes several steps of a loop at
// once: all of them load, then all compute, then all store. What steps hand on (a sum) goes through them in
// order. For GPUs, whose compilers leave such loops alone: the load of a step may be of what the step before
// stored, for all that they know, and nobody knows the number of steps.
//
// Loops whose steps are independent (kIndependentSteps) may store. Others only load. NVIDIA's assembler joins
// those itself where a step is a number.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kAtOnce = 4; // steps, where their number is not known
constexpr unsigned kMostOperations = 48;
constexpr int64_t kFar = int64_t(1) << 28; // few steps of that, and a number below it, fit into 32 bits

constexpr char kAnnotation[] = "llvm.loop_annotation";

/// Clones the steps of a loop that have these numbers, each operation for all of them before the next one,
/// and behind them what asks the step before. Returns what the last step hands on.
SmallVector<Value> takeAtOnce(OpBuilder &b, scf::ForOp loop, ArrayRef<Value> numbers, ValueRange carried) {
  SmallVector<IRMapping> maps(numbers.size());
  for (auto [map, number] : llvm::zip_equal(maps, numbers))
    map.map(loop.getInductionVar(), number);
  llvm::SmallPtrSet<Value, 16> varies{loop.getInductionVar()}, handed;
  handed.insert_range(loop.getRegionIterArgs());
  SmallVector<Operation *> inOrder;
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto asks = [&](const llvm::SmallPtrSetImpl<Value> &values) {
      return llvm::any_of(op.getOperands(), [&](Value value) { return values.contains(value); });
    };
    if (asks(handed)) {
      handed.insert_range(op.getResults());
      inOrder.push_back(&op);
      continue;
    }
    bool same = isPure(&op) && !asks(varies);
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
  SmallVector<Value> values(carried);
  for (IRMapping &map : maps) {
    map.map(loop.getRegionIterArgs(), values);
    for (Operation *op : inOrder)
      b.clone(*op, map);
    for (auto [value, yielded] : llvm::zip_equal(values, loop.getBody()->getTerminator()->getOperands()))
      value = map.lookupOrDefault(yielded);
  }
  return values;
}

/// What is left of a loop after the steps that are taken at once: a few, which LLVM need not unroll.
void leaveAlone(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto asItIs = LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setAttr(kAnnotation, LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, asItIs, {}, {}, {}, {}, {},
                                                           {}, {}, {}, {}, {}, {}));
}

/// A loop of so many steps at most, from a number less than one: all of them at once where there are as many,
/// as in every block but the one at the end of the data.
void joinAll(scf::ForOp loop, int64_t step, int64_t steps) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto numbers = [&] {
    SmallVector<Value> found;
    for (int64_t k = 0; k < steps; ++k)
      found.push_back(b.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(),
                                                    arith::ConstantIndexOp::create(b, loc, k * step)));
    return found;
  };
  if (getConstantIntValue(loop.getUpperBound()) == step * steps) {
    takeAtOnce(b, loop, numbers(), {});
    loop.erase();
    return;
  }
  Value whole = arith::ConstantIndexOp::create(b, loc, step * steps);
  Value hasAll = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, loop.getUpperBound(), whole);
  auto either = scf::IfOp::create(b, loc, hasAll, /*withElseRegion=*/true);
  b.setInsertionPointToStart(either.thenBlock());
  takeAtOnce(b, loop, numbers(), {});
  loop->moveBefore(either.elseBlock()->getTerminator());
  leaveAlone(loop);
}

/// A loop of any number of steps: a few at once while there are so many, then one by one.
void joinFew(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Type type = loop.getInductionVar().getType();
  Value step = loop.getStep();
  auto times = [&](OpBuilder &in, int64_t count) {
    Value number = arith::ConstantOp::create(in, loc, in.getIntegerAttr(type, count));
    return in.createOrFold<arith::MulIOp>(loc, step, number);
  };
  // The end for the first of several steps, unless it might wrap around in 32 bits: they go one by one then.
  Value end = b.createOrFold<arith::SubIOp>(loc, loop.getUpperBound(), times(b, kAtOnce - 1));
  auto compare = [&](arith::CmpIPredicate how, Value value, int64_t number) {
    Value other = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, number));
    return b.createOrFold<arith::CmpIOp>(loc, how, value, other);
  };
  Value isNear = compare(arith::CmpIPredicate::sge, loop.getUpperBound(), -kFar);
  if (!getConstantIntValue(step))
    isNear = arith::AndIOp::create(b, loc, isNear, compare(arith::CmpIPredicate::sle, step, kFar));
  end = b.createOrFold<arith::SelectOp>(loc, isNear, end, loop.getLowerBound());
  Value stride = times(b, kAtOnce);
  // It carries the number of the step after its own, where the rest begins.
  SmallVector<Value> start{loop.getLowerBound()};
  llvm::append_range(start, loop.getInitArgs());
  auto many =
      scf::ForOp::create(b, loc, loop.getLowerBound(), end, stride, start,
                         [&](OpBuilder &in, Location, Value first, ValueRange carried) {
                           SmallVector<Value> numbers{first};
                           for (int64_t k = 1; k < kAtOnce; ++k)
                             numbers.push_back(arith::AddIOp::create(in, loc, first, times(in, k)));
                           SmallVector<Value> handed{arith::AddIOp::create(in, loc, first, stride)};
                           llvm::append_range(handed, takeAtOnce(in, loop, numbers, carried.drop_front()));
                           scf::YieldOp::create(in, loc, handed);
                         });
  loop.getLowerBoundMutable().set(many.getResult(0));
  loop.getInitArgsMutable().assign(many.getResults().drop_front());
  leaveAlone(loop);
}

/// Operations that are the thread's own affair: what other threads do in the same step does not matter to
/// them, as it does to an exchange between lanes.
bool isOfThread(Operation *op) {
  return isPure(op) && op->getDialect() &&
         llvm::is_contained({"affine", "arith", "complex", "index", "math", "memref", "vector"},
                            op->getDialect()->getNamespace());
}

/// Whether the loop loads from memory that is far, and does nothing that has to stay where it is.
bool onlyLoads(scf::ForOp loop, bool mayStore) {
  unsigned count = 0;
  bool loads = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (++count > kMostOperations || op.getNumRegions())
      return false;
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      Attribute space = load.getMemRefType().getMemorySpace();
      loads |= !isWorkgroup(space) && !isPrivate(space) && llvm::any_of(load.getIndices(), [&](Value each) {
        return !loop.isDefinedOutsideOfLoop(each);
      });
    } else if (!isOfThread(&op) && !(mayStore && isa<memref::StoreOp>(op))) {
      return false;
    }
  }
  return loads;
}

struct JoinSteps : public PassWrapper<JoinSteps, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinSteps)

  JoinSteps() = default;
  JoinSteps(const JoinSteps &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-join-steps"; }
  StringRef getDescription() const final { return "Take several steps of a thread's loop at once"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      join(loop);
  }

  void join(scf::ForOp loop) {
    auto independent = loop->getAttrOfType<IntegerAttr>(kIndependentSteps);
    loop->removeAttr(kIndependentSteps);
    std::optional<int64_t> step = getConstantIntValue(loop.getStep());
    if (independent && independent.getInt())
      return joinAll(loop, *step, independent.getInt());
    bool hasKnownSteps =
        step && getConstantIntValue(loop.getUpperBound()) && getConstantIntValue(loop.getLowerBound());
    bool isLeft = step && ((!independent && leavesNumbers) || *step > kFar);
    bool isNarrow = loop.getInductionVar().getType().isIntOrFloat() &&
                    loop.getInductionVar().getType().getIntOrFloatBitWidth() < 32;
    if (!isLeft && !isNarrow && !hasKnownSteps && !loop.getUnsignedCmp() && !loop->hasAttr(kAnnotation) &&
        onlyLoads(loop, independent != nullptr))
      joinFew(loop);
  }

  Option<bool> leavesNumbers{*this, "leave-numbers",
                             llvm::cl::desc("leave loops that only load, and whose step is a number")};
};

} // namespace

void registerJoinStepsPass() { PassRegistration<JoinSteps>(); }

} // namespace offload
