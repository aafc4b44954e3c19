//===- shape_nests.cpp - offload-shape-nests ------------------------------===//
//
// convert-parallel-loops-to-gpu makes blocks of the outer loop of a nest and threads of the inner one. All
// threads of a block then run what stands between the loops, at any time: what is read there may have been
// written by the inner loop of another thread, and what is written after it is written by all of them. The
// initial value of a reduction gets lost, and an inner loop of any length becomes a block of so many threads.
//
// This pass leaves it the nests that it is right for. Where the inner loop may be too long for a block, both
// loops become one; where they cannot, the inner loops are run by each thread of the outer one.
//
//===----------------------------------------------------------------------===//

#include "host/buffer_flow.h"
#include "loops/parallel_loops.h"
#include "loops/row_steps.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace offload {
namespace {

/// The memory that a value shows part of.
Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value shown = shownBy(op);
    if (!shown)
      break;
    value = shown;
  }
  return value;
}

/// Arguments of functions and what is allocated: of two of these each is memory of its own. But for an
/// argument and a global, or another argument.
bool isKnownMemory(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return argument.getOwner()->isEntryBlock() &&
           isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp, gpu::AllocOp>(root.getDefiningOp());
}

bool isConstant(memref::GetGlobalOp op) {
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(op, op.getNameAttr());
  return global && global.getConstant();
}

bool mayBeSame(Value a, Value b) {
  a = rootOf(a), b = rootOf(b);
  if (isa<BlockArgument>(a) && isa<BlockArgument>(b) && isKnownMemory(a) && isKnownMemory(b))
    return mayBeOne(a, b);
  auto one = a.getDefiningOp<memref::GetGlobalOp>(), other = b.getDefiningOp<memref::GetGlobalOp>();
  if (one && other)
    return one.getName() == other.getName();
  // Functions of the program may get a global.
  if ((one && isa<BlockArgument>(b)) || (other && isa<BlockArgument>(a)))
    return !isConstant(one ? one : other);
  return a == b || !isKnownMemory(a) || !isKnownMemory(b);
}

/// What an operation reads; nothing where it may do anything else with memory.
std::optional<SmallVector<Value>> onlyReads(Operation *op) {
  SmallVector<Value> values;
  if (isMemoryEffectFree(op))
    return values;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || op->getNumRegions())
    return std::nullopt;
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffects(found);
  for (const MemoryEffects::EffectInstance &effect : found) {
    if (!isa<MemoryEffects::Read>(effect.getEffect()) || !effect.getValue())
      return std::nullopt;
    values.push_back(effect.getValue());
  }
  return values;
}

bool mayWrite(scf::ParallelOp loop, ArrayRef<Value> values) {
  return loop.getBody()
      ->walk([&](Operation *op) {
        if (onlyReads(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
          return WalkResult::advance();
        auto effects = dyn_cast<MemoryEffectOpInterface>(op);
        SmallVector<MemoryEffects::EffectInstance> found;
        if (effects)
          effects.getEffects(found);
        bool hit = !effects || llvm::any_of(found, [&](const MemoryEffects::EffectInstance &effect) {
          return !effect.getValue() ||
                 llvm::any_of(values, [&](Value value) { return mayBeSame(value, effect.getValue()); });
        });
        return hit ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The loop whose iterations can be threads of blocks that are the iterations of `outer`; null where there is
/// none.
scf::ParallelOp threadsOf(scf::ParallelOp outer) {
  scf::ParallelOp inner;
  SmallVector<Value> read;
  for (Operation &op : outer.getBody()->without_terminator()) {
    if (auto loop = dyn_cast<scf::ParallelOp>(op)) {
      if (inner || loop.getNumReductions() || outer.getNumReductions())
        return {};
      inner = loop;
      continue;
    }
    std::optional<SmallVector<Value>> values = onlyReads(&op);
    if (!values || op.getNumRegions() || (inner && !isMemoryEffectFree(&op)))
      return {};
    read.append(*values);
  }
  if (!inner || (!read.empty() && mayWrite(inner, read)))
    return {};
  for (OperandRange bounds : {inner.getLowerBound(), inner.getUpperBound(), inner.getStep()})
    for (Value bound : bounds)
      if (!outer.isDefinedOutsideOfLoop(bound) && !getConstantIntValue(bound))
        return {};
  return inner;
}

/// Is the number of iterations known, and no more than a block has threads?
bool fitsIntoBlock(scf::ParallelOp loop) {
  int64_t threads = 1;
  for (unsigned i = loop.getNumLoops(), axis = 0; i-- > 0; ++axis) { // the innermost along x
    std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()[i]),
                           end = getConstantIntValue(loop.getUpperBound()[i]),
                           by = getConstantIntValue(loop.getStep()[i]);
    if (!first || !end || !by || *by <= 0 || *end <= *first)
      return false;
    int64_t count = llvm::divideCeil(*end - *first, *by);
    if ((axis == 2 && count > kMaxDeep) || llvm::MulOverflow(threads, count, threads))
      return false;
  }
  return threads <= kMaxThreads;
}

/// Both loops become one. What stands between them is done for each iteration of the inner one.
void join(scf::ParallelOp outer, scf::ParallelOp inner) {
  OpBuilder b(outer);
  auto both = [&](OperandRange first, OperandRange second) {
    SmallVector<Value> values(first);
    for (Value value : second) { // a constant may stand inside of the outer loop
      std::optional<int64_t> constant = getConstantIntValue(value);
      values.push_back(constant ? arith::ConstantIndexOp::create(b, outer.getLoc(), *constant) : value);
    }
    return values;
  };
  auto low = both(outer.getLowerBound(), inner.getLowerBound()),
       high = both(outer.getUpperBound(), inner.getUpperBound()),
       step = both(outer.getStep(), inner.getStep());
  scf::ParallelOp::create(b, inner.getLoc(), low, high, step, [&](OpBuilder &in, Location, ValueRange ivs) {
    IRMapping map;
    map.map(outer.getInductionVars(), ivs.take_front(outer.getNumLoops()));
    map.map(inner.getInductionVars(), ivs.drop_front(outer.getNumLoops()));
    for (Operation &op : outer.getBody()->without_terminator()) {
      if (&op != inner) {
        in.clone(op, map);
        continue;
      }
      for (Operation &each : inner.getBody()->without_terminator())
        in.clone(each, map);
    }
  });
  outer.erase();
}

struct ShapeNests : public PassWrapper<ShapeNests, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShapeNests)

  StringRef getArgument() const final { return "offload-shape-nests"; }
  StringRef getDescription() const final {
    return "Leave nests of scf.parallel that blocks of threads can run";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (scf::ParallelOp loop : outermostParallel(getOperation()))
      if (!isMapped(loop))
        shape(loop);
  }

  /// Does the author say, or take for granted, which loops are blocks and which are threads?
  static bool isMapped(scf::ParallelOp loop) {
    return loop
        ->walk([](Operation *op) {
          return op->hasAttr(gpu::getMappingAttrName()) || takesThreadsForGranted(op)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  static SmallVector<scf::ParallelOp> loopsIn(scf::ParallelOp loop) {
    SmallVector<scf::ParallelOp> inner; // the innermost first
    loop.getBody()->walk([&](scf::ParallelOp each) { inner.push_back(each); });
    return inner;
  }

  static void shape(scf::ParallelOp loop) {
    if (loopsIn(loop).empty())
      return;
    moveLoopInvariantCode(loop); // bounds, for instance
    scf::ParallelOp threads = threadsOf(loop);
    for (scf::ParallelOp each : loopsIn(threads ? threads : loop))
      makeSerial(each);
    if (threads && !fitsIntoBlock(threads))
      join(loop, threads);
  }
};

} // namespace

void registerShapeNestsPass() { PassRegistration<ShapeNests>(); }

} // namespace offload
