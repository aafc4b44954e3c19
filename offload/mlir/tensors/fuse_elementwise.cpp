//===- fuse_elementwise.cpp - offload-fuse-elementwise --------------------===//
//
// A chain of operations on the elements of tensors is one kernel without tensors between. An operation goes
// into the one that uses its result where each element is used once: not into a product of matrices, which
// would compute it again for every row. Where several operations on elements use the result, it goes into
// each of them if it is little to compute again, and its operands little to read again.
//
// No operation computes one element of another's result twice: of a recurrence such as Chebyshev's, where
// each step reads the two before it, every step would double what is computed. So what is used once is fused
// first: then operations have the size that computing them again costs, and what two parts of a step read is
// read by the one operation that the step became.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace offload {
namespace {

bool worksOnElements(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumParallelLoops() == op.getNumLoops();
}

/// Operations of a body, its terminator among them, that are computed again.
constexpr size_t kMostAgain = 8;

/// Operations of a body that may still get others which are computed again.
constexpr size_t kMostWithAgain = 64;

/// Arithmetic that takes less time than reading the result from memory does, also where it was put together
/// from several operations: what is in two kernels is put into four by the next ones.
bool isCheap(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  return body->getOperations().size() <= kMostAgain &&
         llvm::all_of(body->without_terminator(), [](Operation &each) {
           return isa_and_nonnull<arith::ArithDialect>(each.getDialect()) &&
                  !isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                       arith::RemUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(each);
         });
}

/// Do other operations on elements compute the result again for less than storing and reading it costs?
/// Counted in tensors that are read or written; a kernel saved is worth two.
bool isComputedAgain(OpResult result) {
  auto made = cast<linalg::LinalgOp>(result.getOwner());
  if (made->getNumResults() != 1 || !isCheap(made))
    return false;
  llvm::SmallPtrSet<Operation *, 4> users;
  for (OpOperand &use : result.getUses()) {
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!user || !worksOnElements(user) || user.isDpsInit(&use) ||
        !user.getMatchingIndexingMap(&use).isPermutation() || user->getBlock() != made->getBlock() ||
        user.getBlock()->getOperations().size() > kMostWithAgain)
      return false;
    users.insert(user);
  }
  auto isWhole = [&](OpOperand *input) { return made.getMatchingIndexingMap(input).isPermutation(); };
  auto inputs = size_t(llvm::count_if(made.getDpsInputOperands(), isWhole));
  return inputs * users.size() <= inputs + users.size() + 2;
}

/// Does the operation read the same tensor elsewhere too? What it reads alike becomes one operand by
/// canonicalization, and is no reason to compute it twice before that. What it reads in another order
/// (x + transpose(x)) is computed for each of them, while the operation is small.
bool isReadTwice(OpOperand *operand) {
  auto user = cast<linalg::LinalgOp>(operand->getOwner());
  AffineMap map = user.getMatchingIndexingMap(operand);
  bool small = user.getBlock()->getOperations().size() <= kMostAgain;
  return llvm::any_of(user.getDpsInputOperands(), [&](OpOperand *other) {
    return other != operand && other->get() == operand->get() &&
           (!small || user.getMatchingIndexingMap(other) == map);
  });
}

bool isUsedOnce(OpOperand *operand) {
  auto user = cast<linalg::LinalgOp>(operand->getOwner());
  return user.getMatchingIndexingMap(operand).isPermutation() && operand->get().hasOneUse();
}

bool isFused(OpOperand *operand) {
  auto user = cast<linalg::LinalgOp>(operand->getOwner());
  if (!user.getMatchingIndexingMap(operand).isPermutation() || isReadTwice(operand))
    return false;
  return operand->get().hasOneUse() || isComputedAgain(cast<OpResult>(operand->get()));
}

/// Part of a tensor that many threads fill, which is read, and written again by the result, is worked on in
/// its place. With a place of its own, what is read would be copied first, to memory that a thread may not
/// have.
void workInPlace(linalg::GenericOp op) {
  if (!worksOnElements(op))
    return;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&init);
    if (!result.hasOneUse() || op.payloadUsesValueFromOperand(&init))
      continue;
    auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(*result.user_begin());
    if (!insertion || insertion.getSource() != result)
      continue;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto part = input->get().getDefiningOp<tensor::ExtractSliceOp>();
      if (!part || part.getSource() != insertion.getDest() || part.getType() != result.getType() ||
          op.getMatchingIndexingMap(input) != op.getMatchingIndexingMap(&init) ||
          !cast<OffsetSizeAndStrideOpInterface>(part.getOperation())
               .isSameAs(insertion, [](OpFoldResult a, OpFoldResult b) { return a == b; }))
        continue;
      init.set(part);
      op.getMatchingBlockArgument(input).replaceAllUsesWith(op.getMatchingBlockArgument(&init));
      break;
    }
  }
}

/// MLIR takes what is reduced for what nothing reads where the body leaves the values before it out; a
/// reduction of no elements is those.
struct UnlessReduced : public RewritePattern {
  UnlessReduced(std::unique_ptr<RewritePattern> pattern, MLIRContext *context)
      : RewritePattern(linalg::GenericOp::getOperationName(), pattern->getBenefit(), context),
        pattern(std::move(pattern)) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const final {
    return failure(cast<linalg::GenericOp>(op).getNumReductionLoops() > 0 ||
                   failed(pattern->matchAndRewrite(op, rewriter)));
  }

  std::unique_ptr<RewritePattern> pattern;
};

void keepReduced(RewritePatternSet &patterns) {
  for (std::unique_ptr<RewritePattern> &each : patterns.getNativePatterns())
    if (each->getDebugName().contains("RemoveOutsDependency"))
      each = std::make_unique<UnlessReduced>(std::move(each), patterns.getContext());
}

struct FuseElementwise : public PassWrapper<FuseElementwise, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseElementwise)

  StringRef getArgument() const final { return "offload-fuse-elementwise"; }
  StringRef getDescription() const final { return "Make chains of operations on elements one operation"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<linalg::LinalgDialect, tensor::TensorDialect>();
  }

  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> named;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (worksOnElements(op) && !isa<linalg::GenericOp, linalg::FillOp>(op)) // a fill becomes a constant
        named.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op); // what has no such form stays as it is
    }
    for (auto *which : {isUsedOnce, isFused}) {
      RewritePatternSet patterns(&getContext());
      linalg::populateElementwiseOpsFusionPatterns(patterns, which);
      keepReduced(patterns);
      // Asking for the size of a result is a use, until the size is asked of what it was made of: first of
      // what it is written into, which is an empty tensor soon. All of a chain is asked what is read instead.
      tensor::DimOp::getCanonicalizationPatterns(patterns, &getContext());
      memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
      linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
      // Of a long chain the rounds may end before all of it is fused: the rest are kernels of their own.
      (void)applyPatternsGreedily(getOperation(), std::move(patterns));
    }
    getOperation()->walk(workInPlace);
  }
};

} // namespace

void registerFuseElementwisePass() { PassRegistration<FuseElementwise>(); }

} // namespace offload
