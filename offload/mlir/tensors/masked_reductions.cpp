//===- masked_reductions.cpp - offload-masked-reductions ------------------===//
//
// Where vector.multi_reduction takes dimensions of size 1 alone, MLIR 22's canonicalization makes it one
// operation on elements; under a mask it then gives the source where the mask is not set, which must be the
// accumulator. Written as a choice between the two, it is right whatever becomes of the reduction.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

bool isOfElements(vector::MaskOp mask) {
  auto reduction = dyn_cast_or_null<vector::MultiDimReductionOp>(mask.getMaskableOp());
  if (!reduction || mask.hasPassthru())
    return false;
  ArrayRef<int64_t> shape = reduction.getSourceVectorType().getShape();
  return llvm::all_of(reduction.getReductionDims(), [&](int64_t dim) { return shape[dim] == 1; });
}

void write(vector::MaskOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto reduction = cast<vector::MultiDimReductionOp>(op.getMaskableOp());
  Operation *whole = b.clone(*reduction);
  Value mask = op.getMask(), sofar = reduction.getAcc();
  if (auto type = dyn_cast<VectorType>(sofar.getType()))
    mask = vector::ShapeCastOp::create(b, loc, type.clone(b.getI1Type()), mask);
  else
    mask = vector::ExtractOp::create(
        b, loc, mask, SmallVector<int64_t>(size_t(reduction.getSourceVectorType().getRank()), 0));
  op->replaceAllUsesWith(arith::SelectOp::create(b, loc, mask, whole->getResult(0), sofar));
  op->erase();
}

struct MaskedReductions : public PassWrapper<MaskedReductions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MaskedReductions)

  StringRef getArgument() const final { return "offload-masked-reductions"; }
  StringRef getDescription() const final { return "Write masked reductions of single elements as choices"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    SmallVector<vector::MaskOp> masks;
    getOperation()->walk([&](vector::MaskOp op) {
      if (isOfElements(op))
        masks.push_back(op);
    });
    llvm::for_each(masks, write);
  }
};

} // namespace

void registerMaskedReductionsPass() { PassRegistration<MaskedReductions>(); }

} // namespace offload
