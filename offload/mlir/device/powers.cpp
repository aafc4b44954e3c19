//===- powers.cpp - Powers with whole exponents, for offload-prepare-math -===//

#include "device/numeric.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace offload {
namespace {

/// Squaring, as many times as the exponent has bits. A negative exponent leaves the inverse of 1 and -1, and
/// 0.
struct IntegerPower : public OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;

  static Value scalar(PatternRewriter &b, Location loc, Value base, Value exponent) {
    Type type = base.getType();
    auto number = [&](int64_t value) { return integerOf(b, loc, type, value); };
    Value zero = number(0), one = number(1), minusOne = number(-1);
    auto equal = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
    };
    auto loop = scf::WhileOp::create(
        b, loc, TypeRange{type, type, type}, ValueRange{one, base, exponent},
        [&](OpBuilder &inner, Location at, ValueRange state) {
          Value more = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::ne, state[2], zero);
          scf::ConditionOp::create(inner, at, more, state);
        },
        [&](OpBuilder &inner, Location at, ValueRange state) {
          Value last = arith::AndIOp::create(inner, at, state[2], one);
          Value odd = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::ne, last, zero);
          Value product = arith::MulIOp::create(inner, at, state[0], state[1]);
          Value result = arith::SelectOp::create(inner, at, odd, product, state[0]);
          Value square = arith::MulIOp::create(inner, at, state[1], state[1]);
          Value half = arith::ShRUIOp::create(inner, at, state[2], one);
          scf::YieldOp::create(inner, at, ValueRange{result, square, half});
        });
    Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, exponent, zero);
    Value odd = equal(arith::AndIOp::create(b, loc, exponent, one), one);
    Value sign = arith::SelectOp::create(b, loc, odd, minusOne, one);
    Value inverse = arith::SelectOp::create(b, loc, equal(base, one), one, zero);
    inverse = arith::SelectOp::create(b, loc, equal(base, minusOne), sign, inverse);
    return arith::SelectOp::create(b, loc, negative, inverse, loop.getResult(0));
  }

  LogicalResult matchAndRewrite(math::IPowIOp op, PatternRewriter &b) const override {
    if (getElementTypeOrSelf(op.getType()).isInteger(1)) {
      // The loop's shift by 1 has no value here. Powers of 1 are 1, of 0 they are 0 but for the exponent 0.
      Value one = integerOf(b, op.getLoc(), op.getType(), 1);
      Value zeroth = arith::XOrIOp::create(b, op.getLoc(), op.getRhs(), one);
      b.replaceOpWithNewOp<arith::OrIOp>(op, op.getLhs(), zeroth);
      return success();
    }
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type) {
      b.replaceOp(op, scalar(b, op.getLoc(), op.getLhs(), op.getRhs()));
      return success();
    }
    if (type.isScalable() || type.getRank() != 1)
      return failure();
    SmallVector<Value> elements;
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value base = vector::ExtractOp::create(b, op.getLoc(), op.getLhs(), i);
      Value exponent = vector::ExtractOp::create(b, op.getLoc(), op.getRhs(), i);
      elements.push_back(scalar(b, op.getLoc(), base, exponent));
    }
    b.replaceOpWithNewOp<vector::FromElementsOp>(op, type, elements);
    return success();
  }
};

/// Libraries of GPUs have fpowi for exponents of 32 bits, libm has none. NVIDIA's multiplies again and again,
/// rounding each time, and has 1 over infinity for what is below normal numbers: that is an approximation.
/// The rest is powf of doubles: exact for exponents below 2^53, and with the sign taken from the exponent's
/// last bit, right beyond. Exponents of more than 64 bits become the nearest of 64 that is even or odd as
/// they are: no number but 1 is so near to 1 that its power is not 0 or infinity by then.
struct FloatPower : public OpRewritePattern<math::FPowIOp> {
  enum Library { None, Approximate, Accurate };
  FloatPower(MLIRContext *context, Library library) : OpRewritePattern(context), library(library) {}
  LogicalResult matchAndRewrite(math::FPowIOp op, PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Type type = op.getType(), exponents = op.getRhs().getType();
    Type element = getElementTypeOrSelf(exponents);
    auto base = cast<FloatType>(getElementTypeOrSelf(type));
    auto vector = dyn_cast<VectorType>(type);
    if (base.getWidth() < 32 || base.getWidth() > 64 || (vector && vector.isScalable()))
      return failure();
    unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    Value exponent = op.getRhs();
    if (width > 64) {
      Type words = withElement(exponents, b.getI64Type());
      Value near = arith::MaxSIOp::create(b, loc, exponent, integerOf(b, loc, exponents, INT64_MIN));
      near = arith::MinSIOp::create(b, loc, near, integerOf(b, loc, exponents, INT64_MAX));
      near = arith::TruncIOp::create(b, loc, words, near);
      near = arith::AndIOp::create(b, loc, near, integerOf(b, loc, words, -2));
      Value last = arith::TruncIOp::create(b, loc, words, exponent);
      last = arith::AndIOp::create(b, loc, last, integerOf(b, loc, words, 1));
      exponent = arith::OrIOp::create(b, loc, near, last);
      width = 64;
    }
    bool approximate = bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn);
    if (width <= 32 && (library == Accurate || (library == Approximate && approximate))) {
      if (width == 32)
        return failure();
      exponent = arith::ExtSIOp::create(b, loc, withElement(exponents, b.getI32Type()), exponent);
      b.replaceOpWithNewOp<math::FPowIOp>(op, op.getLhs(), exponent, op.getFastmath());
      return success();
    }
    Type wide = withElement(type, b.getF64Type()), words = withElement(type, b.getI64Type());
    if (element.isIndex())
      exponent = arith::IndexCastOp::create(b, loc, words, exponent);
    else if (width < 64)
      exponent = arith::ExtSIOp::create(b, loc, words, exponent);
    Value x = op.getLhs();
    if (base.getWidth() == 32)
      x = arith::ExtFOp::create(b, loc, wide, x);
    Value power = arith::SIToFPOp::create(b, loc, wide, exponent);
    Value result = math::PowFOp::create(b, loc, x, power, op.getFastmath());
    if (width == 64) {
      Value size = math::AbsFOp::create(b, loc, x);
      size = math::PowFOp::create(b, loc, size, power, op.getFastmath());
      Value last = arith::AndIOp::create(b, loc, exponent, integerOf(b, loc, words, 1));
      Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, last, integerOf(b, loc, words, 0));
      Value withSign = math::CopySignOp::create(b, loc, size, x);
      result = arith::SelectOp::create(b, loc, odd, withSign, size);
    }
    if (base.getWidth() == 32)
      result = arith::TruncFOp::create(b, loc, type, result);
    b.replaceOp(op, result);
    return success();
  }
  Library library;
};

} // namespace

void addPowerPatterns(RewritePatternSet &patterns, StringRef library) {
  MLIRContext *context = patterns.getContext();
  patterns.add<IntegerPower>(context);
  patterns.add<FloatPower>(context, library == "rocdl"  ? FloatPower::Accurate
                                    : library == "nvvm" ? FloatPower::Approximate
                                                        : FloatPower::None);
}

} // namespace offload
