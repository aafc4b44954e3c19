//===- prepare_complex.cpp - offload-prepare-complex ----------------------===//
//
// Runs before convert-complex-to-standard, for what that leaves out or gets wrong: complex.bitcast has no
// lowering, and complex.sqrt loses the sign of a zero imaginary part, which says on which side of the branch
// cut it lies. complex.sin and complex.cos take hyperbolic functions from differences of exponentials there:
// of small imaginary parts nothing was left, and 0 times infinity was not a number. complex.log takes the
// real part from the logarithm of a size there, of which nothing is left near the unit circle.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
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
  Value imaginary = half(arith::ShRUIOp::create(b, loc, word, shift));
  return complex::CreateOp::create(b, loc, type, half(word), imaginary);
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

/// log|z| for sizes near 1, from |z|^2 - 1 with x the larger part: log1p(x^2 - 1 + y^2) / 2, where the
/// squares and their sum keep what rounding them leaves (Dekker's product by fma, Knuth's two-sum).
void keepSmallSize(complex::LogOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
  b.setInsertionPointAfter(op);
  Value logarithm = op.getResult();
  auto real = complex::ReOp::create(b, logarithm);
  auto imaginary = complex::ImOp::create(b, logarithm);
  auto size = [&](Value part) -> Value { return math::AbsFOp::create(b, part); };
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(real.getType(), value));
  };
  auto test = [&](arith::CmpFPredicate p, Value l, Value r) -> Value {
    return arith::CmpFOp::create(b, p, l, r);
  };
  Value re = size(complex::ReOp::create(b, op.getComplex()));
  Value im = size(complex::ImOp::create(b, op.getComplex()));
  Value isSteep = test(arith::CmpFPredicate::OGT, im, re);
  Value x = arith::SelectOp::create(b, isSteep, im, re), y = arith::SelectOp::create(b, isSteep, re, im);
  Value one = number(1);
  auto square = [&](Value part) {
    Value whole = arith::MulFOp::create(b, part, part);
    Value negated = arith::NegFOp::create(b, whole);
    Value rest = math::FmaOp::create(b, part, part, negated);
    return std::make_pair(whole, rest);
  };
  auto [xx, restOfX] = square(x);
  auto [yy, restOfY] = square(y);
  Value excess = arith::SubFOp::create(b, xx, one); // exact
  Value sum = arith::AddFOp::create(b, excess, yy);
  Value part = arith::SubFOp::create(b, sum, excess);
  Value whole = arith::SubFOp::create(b, sum, part);
  Value left = arith::SubFOp::create(b, excess, whole), right = arith::SubFOp::create(b, yy, part);
  Value rest = arith::AddFOp::create(b, left, right), rests = arith::AddFOp::create(b, restOfX, restOfY);
  rest = arith::AddFOp::create(b, rest, rests);
  Value both = math::Log1pOp::create(b, arith::AddFOp::create(b, sum, rest));
  Value close = arith::MulFOp::create(b, both, number(0.5));
  Value isNear = test(arith::CmpFPredicate::OGT, x, number(0.7));
  isNear = arith::AndIOp::create(b, isNear, test(arith::CmpFPredicate::OLT, x, number(1.5)));
  Value chosen = arith::SelectOp::create(b, isNear, close, real);
  Value result = complex::CreateOp::create(b, logarithm.getType(), chosen, imaginary);
  logarithm.replaceUsesWithIf(result, [&](OpOperand &use) {
    return use.getOwner() != real.getOperation() && use.getOwner() != imaginary.getOperation();
  });
}

/// Two numbers whose product is meant: it may be too large where a third one times both is not.
struct Product {
  Value first, second;
};

/// sinh and cosh of y: near 0 through e^|y| - 1, which is exact there; far from it, where the other
/// exponential is nothing, as the product of two roots of e^|y|.
std::pair<Product, Product> hyperbolic(ImplicitLocOpBuilder &b, Value y, arith::FastMathFlags flags) {
  Type type = y.getType();
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  };
  Value one = number(1), half = number(0.5), far = number(20); // e^-40 is below the last digit of f64
  Value size = math::AbsFOp::create(b, y, flags);
  Value isFar = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, size, far);
  Value less = math::ExpM1Op::create(b, arith::SelectOp::create(b, isFar, far, size), flags);
  Value whole = arith::AddFOp::create(b, less, one, flags);
  Value inverse = arith::DivFOp::create(b, one, whole, flags);
  Value rest = arith::MulFOp::create(b, less, inverse, flags);
  auto halved = [&](Value x, Value z) -> Value {
    Value first = arith::MulFOp::create(b, x, half, flags);
    return arith::AddFOp::create(b, first, arith::MulFOp::create(b, z, half, flags), flags);
  };
  Value root = math::ExpOp::create(b, arith::MulFOp::create(b, size, half, flags), flags);
  Value second = arith::SelectOp::create(b, isFar, arith::MulFOp::create(b, root, half, flags), one);
  Value sine = arith::SelectOp::create(b, isFar, root, halved(less, rest));
  Value cosine = arith::SelectOp::create(b, isFar, root, halved(whole, inverse));
  sine = math::CopySignOp::create(b, sine, y, flags);
  return {{sine, second}, {cosine, second}};
}

Value times(ImplicitLocOpBuilder &b, Value x, Product h, arith::FastMathFlags flags) {
  Value first = arith::MulFOp::create(b, x, h.first, flags);
  return arith::MulFOp::create(b, first, h.second, flags);
}

/// x times h, where 0 stays 0 if h is infinite.
Value zeroTimes(ImplicitLocOpBuilder &b, Value x, Product h, arith::FastMathFlags flags) {
  Type type = x.getType();
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(type, 0));
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(type, 1));
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, zero);
  Value sign = math::CopySignOp::create(b, one, h.first);
  h.first = arith::SelectOp::create(b, isZero, sign, h.first);
  h.second = arith::SelectOp::create(b, isZero, one, h.second);
  return times(b, x, h, flags);
}

template <typename Op> void expandWave(Op op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  arith::FastMathFlags flags = op.getFastmath();
  Value x = complex::ReOp::create(b, op.getComplex()), y = complex::ImOp::create(b, op.getComplex());
  Type type = x.getType();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32; // e^20 is not in its range
  if (isNarrow) {
    x = arith::ExtFOp::create(b, b.getF32Type(), x);
    y = arith::ExtFOp::create(b, b.getF32Type(), y);
  }
  Value sine = math::SinOp::create(b, x, flags), cosine = math::CosOp::create(b, x, flags);
  auto [sinh, cosh] = hyperbolic(b, y, flags);
  Value real, imaginary;
  if constexpr (std::is_same_v<Op, complex::SinOp>) {
    real = zeroTimes(b, sine, cosh, flags);
    imaginary = times(b, cosine, sinh, flags);
  } else {
    real = times(b, cosine, cosh, flags);
    imaginary = arith::NegFOp::create(b, zeroTimes(b, sine, sinh, flags), flags);
  }
  if (isNarrow) {
    real = arith::TruncFOp::create(b, type, real);
    imaginary = arith::TruncFOp::create(b, type, imaginary);
  }
  op.replaceAllUsesWith(complex::CreateOp::create(b, op.getType(), real, imaginary).getResult());
  op.erase();
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
    SmallVector<complex::LogOp> logarithms;
    getOperation()->walk([&](Operation *op) {
      if (auto cast = dyn_cast<complex::BitcastOp>(op))
        casts.push_back(cast);
      else if (auto root = dyn_cast<complex::SqrtOp>(op))
        roots.push_back(root);
      else if (auto logarithm = dyn_cast<complex::LogOp>(op))
        logarithms.push_back(logarithm);
    });
    getOperation()->walk(expandWave<complex::SinOp>);
    getOperation()->walk(expandWave<complex::CosOp>);
    llvm::for_each(casts, expand);
    llvm::for_each(roots, keepSign);
    llvm::for_each(logarithms, keepSmallSize);
  }
};

} // namespace

void registerPrepareComplexPass() { PassRegistration<PrepareComplex>(); }

} // namespace offload
