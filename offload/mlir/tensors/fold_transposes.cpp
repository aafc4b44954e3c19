//===- fold_transposes.cpp - offload-fold-transposes ----------------------===//
//
// A layer whose weights are stored output by output is a linalg.transpose of these and a product, to the
// compilers of PyTorch's programs. Of a few rows, moving the weights to where the product reads them takes
// several times what the product does: it reads them where they are, both matrices along the loop that
// reduces (see offload-row-products). With many rows, each element is read so often that it is worth its way.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// How often a product may read an element of a matrix that is not moved for it, of long sums and of short
/// ones: on two cores, 8 rows of 1024 by 4096 weights took 1.7 ms, and 12 with moving them; 64 rows of 512 by
/// 512 took 1.3, and 0.8; 12 times 16 rows of 64 by 512, 2.3 and 1.6.
constexpr int64_t kLongSums = 128, kMostReads = 32, kMostOfShort = 4;

/// How often each element of an input is read; nothing where only the run tells.
std::optional<int64_t> readsOf(linalg::LinalgOp op, OpOperand &input) {
  AffineMap map = op.getMatchingIndexingMap(&input);
  int64_t reads = 1;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (map.isFunctionOfDim(unsigned(loop)))
      continue;
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    reads *= size;
  }
  return reads;
}

/// Where a transposed tensor's elements are in what it was made of, through a map of the product's loops.
AffineMap mapOfSource(linalg::TransposeOp transpose, AffineMap map) {
  SmallVector<AffineExpr> places(map.getResults());
  // Dimension i of the result is dimension permutation[i] of what it was made of.
  for (auto [from, place] : llvm::zip_equal(transpose.getPermutation(), map.getResults()))
    places[size_t(from)] = place;
  return AffineMap::get(map.getNumDims(), 0, places, map.getContext());
}

/// The transposition that an input is the result of, where the product is to read what that was made of.
linalg::TransposeOp foldedInto(linalg::LinalgOp op, OpOperand &input) {
  auto transpose = input.get().getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !transpose.hasPureTensorSemantics() || op.getNumReductionLoops() != 1)
    return {};
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  auto endsWithSum = [&](AffineMap map) {
    return map.getNumResults() > 0 &&
           map.getResults().back() == getAffineDimExpr(reduction[0], op.getContext());
  };
  for (OpOperand *each : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(each);
    if (!endsWithSum(each == &input ? mapOfSource(transpose, map) : map))
      return {};
  }
  std::optional<int64_t> reads = readsOf(op, input);
  int64_t steps = op.getStaticLoopRanges()[reduction[0]];
  bool isLong = !ShapedType::isDynamic(steps) && steps >= kLongSums;
  return reads && *reads <= (isLong ? kMostReads : kMostOfShort) ? transpose : linalg::TransposeOp();
}

void fold(linalg::LinalgOp op, IRRewriter &b) {
  SmallVector<unsigned> folded;
  for (OpOperand *input : op.getDpsInputOperands())
    if (foldedInto(op, *input))
      folded.push_back(input->getOperandNumber());
  if (folded.empty())
    return;
  auto product = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!product) {
    b.setInsertionPoint(op);
    FailureOr<linalg::GenericOp> made = linalg::generalizeNamedOp(b, op);
    if (failed(made))
      return;
    product = *made;
  }
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  for (unsigned number : folded) {
    OpOperand &input = product->getOpOperand(number);
    auto transpose = input.get().getDefiningOp<linalg::TransposeOp>();
    maps[number] = mapOfSource(transpose, maps[number]);
    input.set(transpose.getInput());
  }
  product.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
}

struct FoldTransposes : public PassWrapper<FoldTransposes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldTransposes)

  StringRef getArgument() const final { return "offload-fold-transposes"; }
  StringRef getDescription() const final { return "Let products of few rows read transposed matrices"; }

  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> products;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureTensorSemantics() && linalg::isaContractionOpInterface(op))
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : products)
      fold(op, rewriter);
    getOperation()->walk([](linalg::TransposeOp op) {
      if (op->use_empty() && op.hasPureTensorSemantics())
        op.erase();
    });
  }
};

} // namespace

void registerFoldTransposesPass() { PassRegistration<FoldTransposes>(); }

} // namespace offload
