//===- collapse_linalg.cpp - offload-collapse-linalg ----------------------===//
//
// Dimensions that every operand of a linalg operation has side by side, in one piece of memory, are one: a
// loop over it finds its elements without divisions, and no short dimension leaves threads without work. Done
// where there are more loops than a grid has dimensions, and where several loops reduce: MLIR's
// linalg::collapseOpIterationDims does the work, and this pass says which dimensions.
//
// A product of matrices of which one has a single row (known when it is compiled) is one of a matrix and a
// vector: without the loop of one step, other passes see that.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr unsigned kDimensions = 3; // of a grid

/// Whether an operand, which the map finds the elements of, has all of these loops' dimensions in one piece,
/// or none of them.
bool isOnePiece(Type type, AffineMap map, ReassociationIndicesRef loops) {
  if (!map.isProjectedPermutation() || !linalg::isDimSequencePreserved(map, loops))
    return false;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return true;
  SmallVector<ReassociationIndices> pieces;
  for (auto [i, result] : llvm::enumerate(map.getResults())) {
    if (!llvm::is_contained(loops.drop_front(), int64_t(cast<AffineDimExpr>(result).getPosition())))
      pieces.emplace_back();
    pieces.back().push_back(int64_t(i));
  }
  return memref.isStrided() && memref::CollapseShapeOp::isGuaranteedCollapsible(memref, pieces);
}

/// The loops in groups that are one each: neighbours of the same kind, as many as the operands allow.
SmallVector<ReassociationIndices> grouped(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < int64_t(kinds.size()); ++i) {
    if (i > 0 && kinds[size_t(i)] == kinds[size_t(i) - 1]) {
      ReassociationIndices longer = groups.back();
      longer.push_back(i);
      if (llvm::all_of(llvm::zip_equal(op->getOperandTypes(), op.getIndexingMapsArray()),
                       [&](auto pair) { return isOnePiece(std::get<0>(pair), std::get<1>(pair), longer); })) {
        groups.back() = longer;
        continue;
      }
    }
    groups.push_back({i});
  }
  return groups;
}

/// Operations that count their iterations would have to divide.
bool isWorthIt(linalg::LinalgOp op) {
  return (op.getNumLoops() > kDimensions || op.getNumReductionLoops() > 1) && op.hasPureBufferSemantics() &&
         !op.hasIndexSemantics();
}

/// Parallel loops of one step, where without them an input has an element for each step of all loops, as the
/// matrix has in its product with a vector.
SmallVector<unsigned> unitLoops(linalg::LinalgOp op) {
  SmallVector<unsigned> ones, parallel;
  op.getParallelDims(parallel);
  for (unsigned loop : parallel)
    if (op.getStaticLoopRanges()[loop] == 1)
      ones.push_back(loop);
  if (ones.empty() || op.getNumReductionLoops() == 0 || !op.hasPureBufferSemantics() ||
      op.hasIndexSemantics())
    return {};
  bool hasAll = false;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!map.isProjectedPermutation() || (op.isDpsInput(&operand) && map.isPermutation()))
      return {};
    unsigned others =
        unsigned(llvm::count_if(ones, [&](unsigned loop) { return !map.isFunctionOfDim(loop); }));
    auto memref = dyn_cast<MemRefType>(operand.get().getType());
    if (memref && others < ones.size() &&
        !memref.getLayout().isIdentity()) // only of these dimensions are taken
      return {};
    hasAll |= op.isDpsInput(&operand) && map.getNumResults() + others == op.getNumLoops();
  }
  return hasAll ? ones : SmallVector<unsigned>();
}

struct CollapseLinalg : public PassWrapper<CollapseLinalg, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CollapseLinalg)

  StringRef getArgument() const final { return "offload-collapse-linalg"; }
  StringRef getDescription() const final { return "Make one loop of those over one piece of memory"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry
        .insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : hostLinalg(getOperation())) {
      op = withoutUnitLoops(op, rewriter);
      if (isWorthIt(op))
        collapse(op, rewriter);
    }
  }

  static linalg::LinalgOp withoutUnitLoops(linalg::LinalgOp op, RewriterBase &rewriter) {
    SmallVector<unsigned> ones = unitLoops(op);
    if (ones.empty())
      return op;
    linalg::GenericOp general = generalized(op, rewriter);
    if (!general)
      return op;
    linalg::ControlDropUnitDims options;
    options.controlFn = [&](Operation *) { return ones; };
    FailureOr<linalg::DropUnitDimsResult> made = linalg::dropUnitDims(rewriter, general, options);
    if (failed(made))
      return general;
    rewriter.eraseOp(general);
    return cast<linalg::LinalgOp>(made->resultOp.getOperation());
  }

  static void collapse(linalg::LinalgOp op, RewriterBase &rewriter) {
    SmallVector<ReassociationIndices> groups = grouped(op);
    if (groups.size() == op.getNumLoops())
      return;
    linalg::GenericOp general = generalized(op, rewriter);
    if (general && succeeded(linalg::collapseOpIterationDims(general, groups, rewriter)))
      rewriter.eraseOp(general);
  }
};

} // namespace

void registerCollapseLinalgPass() { PassRegistration<CollapseLinalg>(); }

} // namespace offload
