//===- size_bounds.cpp - What MLIR does not know of the bounds of numbers -===//
//
// MLIR 22 follows sums, differences, products and quotients of integers where it compares sizes
// (ValueBoundsOpInterface): as the numbers that sizes are computed of. Asked for the size of such a result
// that is a tensor itself, as a branch yields it, it runs into code that is not there, and the process ends.
// Of the least and the greatest of two numbers and of the indices of scf.parallel it knows nothing.
//
//===----------------------------------------------------------------------===//

#include "tensors/size_bounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

template <typename Bound> void bind(arith::AddIOp, Bound result, AffineExpr a, AffineExpr b) {
  result == a + b;
}
template <typename Bound> void bind(arith::SubIOp, Bound result, AffineExpr a, AffineExpr b) {
  result == a - b;
}
template <typename Bound> void bind(arith::MulIOp, Bound result, AffineExpr a, AffineExpr b) {
  result == a *b;
}
template <typename Bound> void bind(arith::FloorDivSIOp, Bound result, AffineExpr a, AffineExpr b) {
  result == a.floorDiv(b);
}
template <typename Bound> void bind(arith::MinSIOp, Bound result, AffineExpr a, AffineExpr b) {
  result <= a;
  result <= b;
}
template <typename Bound> void bind(arith::MaxSIOp, Bound result, AffineExpr a, AffineExpr b) {
  result >= a;
  result >= b;
}

template <typename Op> struct Bounds : public ValueBoundsOpInterface::ExternalModel<Bounds<Op>, Op> {
  void populateBoundsForIndexValue(Operation *op, Value value, ValueBoundsConstraintSet &known) const {
    AffineExpr left = known.getExpr(op->getOperand(0)), right = known.getExpr(op->getOperand(1));
    bind(cast<Op>(op), known.bound(value), left, right);
  }
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dimension,
                                       ValueBoundsConstraintSet &known) const {
    known.bound(value)[dimension] == known.getExpr(op->getOperand(0), dimension);
  }
};

struct StepBounds : public ValueBoundsOpInterface::ExternalModel<StepBounds, scf::ParallelOp> {
  void populateBoundsForIndexValue(Operation *op, Value value, ValueBoundsConstraintSet &known) const {
    auto loops = cast<scf::ParallelOp>(op);
    for (auto [index, from, to] :
         llvm::zip_equal(loops.getInductionVars(), loops.getLowerBound(), loops.getUpperBound()))
      if (index == value) {
        known.bound(value) >= from;
        known.bound(value) < to;
      }
  }
};

template <typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<Bounds<Ops>>(context), ...);
}

} // namespace

void registerSizeBounds(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attach<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::FloorDivSIOp, arith::MinSIOp, arith::MaxSIOp>(
        *context);
  });
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ParallelOp::attachInterface<StepBounds>(*context);
  });
}

} // namespace offload
