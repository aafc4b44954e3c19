//===- order_loops.cpp - offload-order-loops ------------------------------===//
//
// The loops of a linalg operation on buffers in the order that memory asks for: front ends number them as
// they like, StableHLO those of a gradient's convolution anyhow. Loops that reduce come behind the parallel
// ones, where the sum of each column does not have them: of a loop around a parallel one, each step would be
// a launch. Neighbouring threads are steps of the innermost parallel loop. It becomes the one along which the
// inputs' elements lie side by side or stay the same, and among these the one along the output's rows. So
// does the innermost of the loops that reduce, as far as the order of steps is free.
//
// What still lies across is a convolution's filter with its input channels in its rows: it is turned once,
// and not read with a gap between threads for each element of the image.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kFew = 4;  // steps that a thread does itself, those of innermost loops (tile_parallel.cpp)
constexpr int64_t kLong = 8; // steps of a loop that are enough for threads side by side
constexpr int64_t kLeastUses = 64; // of an element that are worth a copy

enum class Next { same, near, far };

/// Where an operand's element of a loop's next step lies.
Next nextOf(OpOperand &operand, unsigned loop) {
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto memref = dyn_cast<MemRefType>(operand.get().getType());
  if (!memref || !map.isFunctionOfDim(loop))
    return Next::same;
  if (!memref.isStrided())
    return Next::far;
  SmallVector<int64_t> strides = memref.getStridesAndOffset().first;
  AffineExpr here = getAffineDimExpr(loop, map.getContext());
  for (auto [stride, place] : llvm::zip_equal(strides, map.getResults())) {
    if (!place.isFunctionOfDim(loop))
      continue;
    AffineExpr step = simplifyAffineExpr(place.replace(here, here + 1) - place, map.getNumDims(), 0);
    if (stride != 1 || step != getAffineConstantExpr(1, map.getContext()))
      return Next::far;
  }
  return Next::near;
}

/// Parallel loops that have so many steps, as far as is known.
SmallVector<unsigned> parallelOf(linalg::LinalgOp op, int64_t least) {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  llvm::erase_if(parallel,
                 [&](unsigned loop) { return !ShapedType::isDynamic(ranges[loop]) && ranges[loop] < least; });
  return parallel;
}

/// The loop along which threads are neighbours.
std::optional<unsigned> threadsAlong(linalg::LinalgOp op) {
  SmallVector<unsigned> found = parallelOf(op, kFew + 1);
  return found.empty() ? std::nullopt : std::optional(found.back());
}

/// The loops that reduce, but those of one step.
SmallVector<unsigned> stepsOf(linalg::LinalgOp op) {
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  llvm::erase_if(reduction, [&](unsigned loop) { return op.getStaticLoopRanges()[loop] == 1; });
  return reduction;
}

/// How often each element of an input is read, or so many times at least.
bool hasManyUses(linalg::LinalgOp op, OpOperand &input) {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  int64_t uses = 1;
  for (unsigned loop : parallel)
    if (!op.getMatchingIndexingMap(&input).isFunctionOfDim(loop)) {
      int64_t range = op.getStaticLoopRanges()[loop];
      uses *= ShapedType::isDynamic(range) ? kLeastUses : range;
    }
  return uses >= kLeastUses;
}

/// Whether a convolution's input that lies across a loop is worth a copy that does not.
bool canBeTurned(linalg::LinalgOp op, OpOperand &input, unsigned loop) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || nextOf(input, loop) != Next::far)
    return false;
  OpOperand *other = op.getDpsInputOperand(op.getDpsInputOperand(0) == &input);
  return op.getMatchingIndexingMap(&input).isProjectedPermutation() &&
         !op.getMatchingIndexingMap(other).isProjectedPermutation() && hasManyUses(op, input) &&
         input.get() != op.getDpsInits().front() &&
         llvm::any_of(stepsOf(op), [&](unsigned step) { return nextOf(input, step) == Next::near; });
}

/// What a loop as the innermost one would cost: operands that lie across it, those that are read before those
/// that need a copy and the output.
std::tuple<unsigned, unsigned, unsigned> costOf(linalg::LinalgOp op, unsigned loop) {
  unsigned across = 0, turned = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (nextOf(*input, loop) == Next::far)
      ++(canBeTurned(op, *input, loop) ? turned : across);
  auto isFar = [&](OpOperand &output) { return nextOf(output, loop) == Next::far; };
  return {across, turned, unsigned(llvm::count_if(op.getDpsInitsMutable(), isFar))};
}

/// The parallel loops as the output's dimensions, where these are in the wrong order for an innermost loop
/// that costs more than another one.
SmallVector<unsigned> orderOfParallel(linalg::LinalgOp op) {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<unsigned> candidates = parallelOf(op, kLong);
  std::optional<unsigned> along = threadsAlong(op);
  if (op.getNumReductionLoops() == 0 || !along || !output.isProjectedPermutation() ||
      output.getNumResults() != parallel.size())
    return parallel;
  unsigned innermost = *along;
  auto cost = costOf(op, innermost);
  SmallVector<unsigned> rows;
  for (unsigned i = 0; i < output.getNumResults(); ++i)
    rows.push_back(output.getDimPosition(i));
  for (unsigned loop : llvm::reverse(rows))
    if (llvm::is_contained(candidates, loop) && costOf(op, loop) < cost) {
      innermost = loop;
      cost = costOf(op, loop);
    }
  if (innermost == *along)
    return parallel;
  llvm::erase(rows, innermost);
  rows.push_back(innermost);
  return rows;
}

/// The loops that reduce, the last of which has inputs' elements side by side, where they may change places.
SmallVector<unsigned> orderOfReduction(linalg::LinalgOp op) {
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  SmallVector<unsigned> candidates = stepsOf(op);
  if (candidates.size() < 2 || !LinalgSteps::of(op) || !mayBeRepeated(op))
    return reduction;
  auto has = [&](unsigned loop, Next next) {
    return llvm::any_of(op.getDpsInputOperands(),
                        [&](OpOperand *each) { return nextOf(*each, loop) == next; });
  };
  if (!has(candidates.back(), Next::far))
    return reduction;
  for (unsigned loop : llvm::reverse(candidates))
    if (has(loop, Next::near) && !has(loop, Next::far)) {
      llvm::erase(reduction, loop);
      reduction.push_back(loop);
      break;
    }
  return reduction;
}

/// An input that neighbouring threads are to find neighbouring elements in.
OpOperand *inputAcross(linalg::LinalgOp op) {
  std::optional<unsigned> along = threadsAlong(op);
  if (!op.hasPureBufferSemantics() || !along)
    return nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (canBeTurned(op, *input, *along))
      return input;
  return nullptr;
}

struct OrderLoops : public PassWrapper<OrderLoops, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OrderLoops)

  StringRef getArgument() const final { return "offload-order-loops"; }
  StringRef getDescription() const final { return "Put the loops of linalg operations in memory's order"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<linalg::LinalgDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : hostLinalg(getOperation()))
      ordered(op, rewriter);
    for (linalg::LinalgOp op : launchableLinalg(getOperation()))
      if (OpOperand *input = inputAcross(op))
        turn(op, *input, rewriter);
  }

  static void ordered(linalg::LinalgOp op, RewriterBase &rewriter) {
    if (!op.hasPureBufferSemantics() || op.getNumDpsInits() == 0)
      return;
    SmallVector<unsigned> order = orderOfParallel(op);
    llvm::append_range(order, orderOfReduction(op));
    if (order.size() != op.getNumLoops() || llvm::is_sorted(order))
      return;
    if (linalg::GenericOp general = generalized(op, rewriter))
      (void)linalg::interchangeGenericOp(rewriter, general, order);
  }

  static void turn(linalg::LinalgOp op, OpOperand &input, RewriterBase &rewriter) {
    unsigned place = input.getOperandNumber();
    linalg::GenericOp general = generalized(op, rewriter);
    if (!general)
      return;
    unsigned innermost = *threadsAlong(general);
    AffineMap map = general.getIndexingMapsArray()[place];
    SmallVector<int64_t> order;
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      if (map.getDimPosition(i) != innermost)
        order.push_back(i);
    order.push_back(*map.getResultPosition(getAffineDimExpr(innermost, map.getContext())));
    Location loc = general.getLoc();
    Value memory = general->getOperand(place);
    auto type = cast<MemRefType>(memory.getType());
    SmallVector<int64_t> shape = applyPermutation(type.getShape(), order);
    SmallVector<Value> sizes;
    for (int64_t dimension : order)
      if (type.isDynamicDim(unsigned(dimension)))
        sizes.push_back(memref::DimOp::create(rewriter, loc, memory, dimension));
    Value turned =
        memref::AllocOp::create(rewriter, loc, MemRefType::get(shape, type.getElementType()), sizes);
    linalg::TransposeOp::create(rewriter, loc, memory, turned, order);
    SmallVector<AffineMap> maps = general.getIndexingMapsArray();
    maps[place] =
        AffineMap::get(map.getNumDims(), 0, applyPermutation(map.getResults(), order), map.getContext());
    general->setOperand(place, turned);
    general.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    rewriter.setInsertionPointAfter(general);
    memref::DeallocOp::create(rewriter, loc, turned);
  }
};

} // namespace

void registerOrderLoopsPass() { PassRegistration<OrderLoops>(); }

} // namespace offload
