//===- prepare_complex.cpp - offload-prepare-complex ----------------------===//
//
// Runs before convert-complex-to-standard, for what that leaves out or gets wrong: complex.bitcast has no
// lowering, and complex.sqrt loses the sign of a zero imaginary part, which says on which side of the branch
// cut it lies.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// The bits of a complex number as an integer: the real part is first in memory, so in the lower half.
Value toInteger(OpBuilder &b, Location loc, Value number) {
  auto part = cast<ComplexType>(number.getType()).getElementType();
  unsigned width = part.getIntOrFloatBitWidth();
  Type half = b.getIntegerType(width), whole = b.getIntegerType(2 * width);
  auto word = [&](Value value) -> Value {
    return arith::ExtUIOp::create(b, loc, whole, arith::BitcastOp::create(b, loc, half, value));
  };
  Value low = word(complex::ReOp::create(b, loc, number));
  Value high = word(complex::ImOp::create(b, loc, number));
  Value shift = arith::ConstantIntOp::create(b, loc, whole, width);
  return arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, shift));
}

Value fromInteger(OpBuilder &b, Location loc, Value word, ComplexType type) {
  Type part = type.getElementType();
  unsigned width = part.getIntOrFloatBitWidth();
  auto half = [&](Value value) -> Value {
    Value bits = arith::TruncIOp::create(b, loc, b.getIntegerType(width), value);
    return arith::BitcastOp::create(b, loc, part, bits);
  };
  Value shift = arith::ConstantIntOp::create(b, loc, word.getType(), width);
  Value high = arith::ShRUIOp::create(b, loc, word, shift);
  return complex::CreateOp::create(b, loc, type, half(word), half(high));
}

void expand(complex::BitcastOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value value = op.getOperand();
  if (isa<ComplexType>(value.getType()))
    value = toInteger(b, loc, value);
  auto result = dyn_cast<ComplexType>(op.getType());
  Type bits = b.getIntegerType(result ? 2 * result.getElementType().getIntOrFloatBitWidth()
                                      : op.getType().getIntOrFloatBitWidth());
  if (value.getType() != bits)
    value = arith::BitcastOp::create(b, loc, bits, value);
  if (result)
    value = fromInteger(b, loc, value, result);
  else if (op.getType() != bits)
    value = arith::BitcastOp::create(b, loc, op.getType(), value);
  op.replaceAllUsesWith(value);
  op.erase();
}

void keepSign(complex::SqrtOp op) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  Value root = op.getResult();
  auto real = complex::ReOp::create(b, loc, root);
  auto imaginary = complex::ImOp::create(b, loc, root);
  Value sign = complex::ImOp::create(b, loc, op.getComplex());
  Value right = math::CopySignOp::create(b, loc, imaginary, sign);
  Value result = complex::CreateOp::create(b, loc, root.getType(), real, right);
  root.replaceUsesWithIf(result, [&](OpOperand &use) {
    return use.getOwner() != real.getOperation() && use.getOwner() != imaginary.getOperation();
  });
}

struct PrepareComplex : public PassWrapper<PrepareComplex, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareComplex)

  StringRef getArgument() const final { return "offload-prepare-complex"; }
  StringRef getDescription() const final { return "Complete the lowering of complex numbers"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, complex::ComplexDialect, math::MathDialect>();
  }

  void runOnOperation() final {
    SmallVector<complex::BitcastOp> casts;
    SmallVector<complex::SqrtOp> roots;
    getOperation()->walk([&](Operation *op) {
      if (auto cast = dyn_cast<complex::BitcastOp>(op))
        casts.push_back(cast);
      else if (auto root = dyn_cast<complex::SqrtOp>(op))
        roots.push_back(root);
    });
    llvm::for_each(casts, expand);
    llvm::for_each(roots, keepSign);
  }
};

} // namespace

void registerPrepareComplexPass() { PassRegistration<PrepareComplex>(); }

} // namespace offload
