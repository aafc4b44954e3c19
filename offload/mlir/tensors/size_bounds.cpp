//===- size_bounds.cpp - Sizes of tensors that arithmetic goes through ----===//
//
// MLIR 22 follows sums, differences, products and quotients of integers where it compares sizes
// (ValueBoundsOpInterface): as the numbers that sizes are computed of. Asked for the size of such a result
// that is a tensor itself, as a branch yields it, it runs into code that is not there, and the process ends.
//
//===----------------------------------------------------------------------===//

#include "tensors/size_bounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

AffineExpr resultOf(arith::AddIOp, AffineExpr a, AffineExpr b) { return a + b; }
AffineExpr resultOf(arith::SubIOp, AffineExpr a, AffineExpr b) { return a - b; }
AffineExpr resultOf(arith::MulIOp, AffineExpr a, AffineExpr b) { return a * b; }
AffineExpr resultOf(arith::FloorDivSIOp, AffineExpr a, AffineExpr b) { return a.floorDiv(b); }

template <typename Op> struct Bounds : public ValueBoundsOpInterface::ExternalModel<Bounds<Op>, Op> {
  void populateBoundsForIndexValue(Operation *op, Value value, ValueBoundsConstraintSet &known) const {
    AffineExpr left = known.getExpr(op->getOperand(0)), right = known.getExpr(op->getOperand(1));
    known.bound(value) == resultOf(cast<Op>(op), left, right);
  }
  void populateBoundsForShapedValueDim(Operation *op, Value value, int64_t dimension,
                                       ValueBoundsConstraintSet &known) const {
    known.bound(value)[dimension] == known.getExpr(op->getOperand(0), dimension);
  }
};

template <typename... Ops> void attach(MLIRContext &context) {
  (Ops::template attachInterface<Bounds<Ops>>(context), ...);
}

} // namespace

void registerSizeBounds(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attach<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::FloorDivSIOp>(*context);
  });
}

} // namespace offload
