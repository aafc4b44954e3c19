//===- prepare_small_floats.cpp - offload-prepare-small-floats ------------===//
//
// Conversions of floats with 4 to 8 bits, and conversions that name a rounding direction, as integer
// arithmetic on all targets alike. Narrowing gives what arith's constant folder gives: to nearest, ties to
// even; too large values become infinity, NaN in formats without infinity, and the largest number in formats
// without either.
//
// Processors either lack these instructions or have ones that saturate, round or know NaN in ways of their
// own, and LLVM ignores a rounding direction outside x86's control register.
//
// Formats: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0; the FNUZ ones as in
// APFloat.
//
//===----------------------------------------------------------------------===//

#include "device/numeric.h"
#include "passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace offload {
namespace {

/// How a format's magnitudes are laid out: the largest finite one, infinity and NaN where it has them.
struct Format {
  unsigned width, exponent, fraction;
  int bias;
  int64_t largest, infinity, nan; // -1: the format has none
  bool unsignedZero = false;      // the bits of -0 are NaN
};

std::optional<Format> formatOf(Type type) {
  return TypeSwitch<Type, std::optional<Format>>(type)
      .Case<Float8E5M2Type>([](Type) { return Format{8, 5, 2, 15, 0x7b, 0x7c, 0x7e}; })
      .Case<Float8E4M3Type>([](Type) { return Format{8, 4, 3, 7, 0x77, 0x78, 0x7c}; })
      .Case<Float8E3M4Type>([](Type) { return Format{8, 3, 4, 3, 0x6f, 0x70, 0x78}; })
      .Case<Float8E4M3FNType>([](Type) { return Format{8, 4, 3, 7, 0x7e, -1, 0x7f}; })
      .Case<Float8E5M2FNUZType>([](Type) { return Format{8, 5, 2, 16, 0x7f, -1, 0x80, true}; })
      .Case<Float8E4M3FNUZType>([](Type) { return Format{8, 4, 3, 8, 0x7f, -1, 0x80, true}; })
      .Case<Float8E4M3B11FNUZType>([](Type) { return Format{8, 4, 3, 11, 0x7f, -1, 0x80, true}; })
      .Case<Float6E2M3FNType>([](Type) { return Format{6, 2, 3, 1, 0x1f, -1, -1}; })
      .Case<Float6E3M2FNType>([](Type) { return Format{6, 3, 2, 3, 0x1f, -1, -1}; })
      .Case<Float4E2M1FNType>([](Type) { return Format{4, 2, 1, 1, 0x7, -1, -1}; })
      .Default([](Type) { return std::nullopt; });
}

/// Arithmetic on values of one shape, written briefly.
struct Arithmetic {
  OpBuilder &b;
  Location loc;

  Value number(Value like, int64_t value) { return integerOf(b, loc, like.getType(), value); }
  Value real(Value like, double value) { return floatOf(b, loc, like.getType(), value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value band(Value x, int64_t y) { return arith::AndIOp::create(b, loc, x, number(x, y)); }
  Value bor(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value shl(Value x, int64_t y) { return arith::ShLIOp::create(b, loc, x, number(x, y)); }
  Value shr(Value x, int64_t y) { return arith::ShRUIOp::create(b, loc, x, number(x, y)); }
  Value test(arith::CmpIPredicate p, Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, p, x, number(x, y));
  }
  Value testReal(arith::CmpFPredicate p, Value x, Value y) { return arith::CmpFOp::create(b, loc, p, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value pick(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }
  Value bits(Value x) { return arith::BitcastOp::create(b, loc, bitsType(x.getType()), x); }
  Value cast(Type to, Value x) { return arith::BitcastOp::create(b, loc, to, x); }
  Value widen(Type to, Value x) { return arith::ExtFOp::create(b, loc, to, x); }
  Value narrow(Type to, Value x) { return arith::TruncFOp::create(b, loc, to, x); }
  Value size(Value x) { // |x|, whatever flags the program is compiled with
    Value words = bits(x);
    unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    return cast(x.getType(), band(words, static_cast<int64_t>((uint64_t(1) << (width - 1)) - 1)));
  }
};

constexpr int64_t kInfinity32 = 0x7f800000, kNaN32 = 0x7fc00000;

/// The bits of an f32 -> the bits (in i32) of a small float.
Value encode(Arithmetic a, const Format &format, Value word) {
  using P = arith::CmpIPredicate;
  Value sign = a.shr(word, 31), size = a.band(word, 0x7fffffff);
  int64_t shift = 23 - format.fraction;
  // Numbers with a leading 1: round by adding just under a half, or a half where the last bit is odd; a carry
  // goes into the exponent, as it must.
  Value last = a.band(a.shr(size, shift), 1);
  Value rounded = a.shr(a.add(a.add(size, a.number(size, (int64_t(1) << (shift - 1)) - 1)), last), shift);
  Value magnitude = a.sub(rounded, a.number(size, int64_t(127 - format.bias) << format.fraction));
  // Below them, adding a power of two whose last bit is worth the smallest number rounds as f32 rounds.
  Type real = withElement(word.getType(), a.b.getF32Type());
  int power = 1 - format.bias - static_cast<int>(format.fraction) + 23;
  Value magic = floatOf(a.b, a.loc, real, std::ldexp(1.0, power));
  Value sum = arith::AddFOp::create(a.b, a.loc, a.cast(real, size), magic);
  Value small = a.sub(a.bits(sum), a.bits(magic));
  magnitude = a.pick(a.test(P::ult, size, int64_t(128 - format.bias) << 23), small, magnitude);

  bool hasNaN = format.nan >= 0;
  int64_t over = format.infinity >= 0 ? format.infinity : hasNaN ? format.nan : format.largest;
  magnitude = a.pick(a.test(P::sgt, magnitude, format.largest), a.number(size, over), magnitude);
  // Without NaN in the format there is no right answer: the largest number, as NVIDIA's conversions have it.
  Value isNaN = a.test(P::ugt, size, kInfinity32);
  magnitude = a.pick(isNaN, a.number(size, hasNaN ? format.nan : format.largest), magnitude);
  if (!hasNaN)
    sign = a.pick(isNaN, a.number(size, 0), sign);
  if (format.unsignedZero) // neither -0 nor -NaN; both would be the bits of NaN
    sign = a.pick(a.test(P::eq, a.band(magnitude, 0x7f), 0), a.number(size, 0), sign);
  return a.bor(magnitude, a.shl(sign, format.width - 1));
}

/// The bits (in i32) of a small float -> the bits of the equal f32.
Value decode(Arithmetic a, const Format &format, Value word) {
  using P = arith::CmpIPredicate;
  Value sign = a.shr(word, format.width - 1);
  Value size = a.band(word, (int64_t(1) << (format.width - 1)) - 1);
  Value normal = a.add(a.shl(size, 23 - format.fraction), a.number(size, int64_t(127 - format.bias) << 23));
  Type real = withElement(word.getType(), a.b.getF32Type());
  Value count = arith::UIToFPOp::create(a.b, a.loc, real, size);
  Value unit =
      floatOf(a.b, a.loc, real, std::ldexp(1.0, 1 - format.bias - static_cast<int>(format.fraction)));
  Value small = a.bits(arith::MulFOp::create(a.b, a.loc, count, unit));
  Value result = a.pick(a.test(P::ult, size, int64_t(1) << format.fraction), small, normal);
  if (format.infinity >= 0) {
    result = a.pick(a.test(P::eq, size, format.infinity), a.number(size, kInfinity32), result);
    result = a.pick(a.test(P::ugt, size, format.infinity), a.number(size, kNaN32), result);
  } else if (format.nan >= 0 && !format.unsignedZero) {
    result = a.pick(a.test(P::eq, size, format.nan), a.number(size, kNaN32), result);
  }
  result = a.bor(result, a.shl(sign, 31));
  if (format.unsignedZero)
    result = a.pick(a.test(P::eq, word, format.nan), a.number(size, kNaN32), result);
  return result;
}

/// f8E8M0FNU is a power of two from 2^-127 (an f32 without a leading 1) to 2^127, or NaN; it has no zero and
/// no sign. Its one significant bit is odd: ties go up.
Value encodePower(Arithmetic a, Value word) {
  using P = arith::CmpIPredicate;
  Value rounded = a.shr(a.add(word, a.number(word, 0x400000)), 23);
  Value small = a.pick(a.test(P::ult, word, 0x600000), a.number(word, 0), a.number(word, 1));
  rounded = a.pick(a.test(P::ult, word, 0x800000), small, rounded);
  // 0, negative numbers, infinity and NaN: unsigned, what is not from 1 to the largest finite number.
  Value outside = a.test(P::uge, a.sub(word, a.number(word, 1)), kInfinity32 - 1);
  return a.pick(outside, a.number(word, 0xff), rounded);
}

Value decodePower(Arithmetic a, Value word) {
  using P = arith::CmpIPredicate;
  Value result = a.pick(a.test(P::eq, word, 0), a.number(word, 0x400000), a.shl(word, 23));
  return a.pick(a.test(P::eq, word, 0xff), a.number(word, kNaN32), result);
}

bool isStaticFloat(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() <= 64 && !(vector && vector.isScalable());
}

struct Widen : public OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &b) const override {
    Type from = op.getIn().getType(), to = op.getType(), element = getElementTypeOrSelf(from);
    std::optional<Format> format = formatOf(element);
    bool power = isa<Float8E8M0FNUType>(element);
    if (!isStaticFloat(from) || !(format || power))
      return failure();
    Arithmetic a{b, op.getLoc()};
    Type words = withElement(from, b.getI32Type()), real = withElement(from, b.getF32Type());
    Value word = arith::ExtUIOp::create(b, op.getLoc(), words, a.bits(op.getIn()));
    Value result = a.cast(real, power ? decodePower(a, word) : decode(a, *format, word));
    unsigned width = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
    if (width > 32)
      result = a.widen(to, result);
    else if (width < 32)
      result = a.narrow(to, result);
    b.replaceOp(op, result);
    return success();
  }
};

bool nearestEven(std::optional<arith::RoundingMode> mode) {
  return !mode || *mode == arith::RoundingMode::to_nearest_even;
}

struct Narrow : public OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &b) const override {
    Type from = op.getIn().getType(), to = op.getType(), element = getElementTypeOrSelf(to);
    std::optional<Format> format = formatOf(element);
    bool power = isa<Float8E8M0FNUType>(element);
    if (!isStaticFloat(from) || !(format || power) || !nearestEven(op.getRoundingmode()))
      return failure();
    Arithmetic a{b, op.getLoc()};
    Type real = withElement(from, b.getF32Type());
    unsigned width = getElementTypeOrSelf(from).getIntOrFloatBitWidth();
    Value value = op.getIn();
    if (width < 32)
      value = a.widen(real, value);
    else if (width > 32)
      value = narrowToOdd(b, op.getLoc(), value);
    Value word = a.bits(value);
    word = power ? encodePower(a, word) : encode(a, *format, word);
    word = arith::TruncIOp::create(b, op.getLoc(), bitsType(to), word);
    b.replaceOp(op, a.cast(to, word));
    return success();
  }
};

/// truncf with a direction: the nearest number, then one step where that lies on the wrong side.
struct NarrowDirected : public OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &b) const override {
    using R = arith::RoundingMode;
    using F = arith::CmpFPredicate;
    Type from = op.getIn().getType(), to = op.getType();
    if (!isStaticFloat(from) || isSmallFloat(to) || !op.getRoundingmode())
      return failure();
    R mode = *op.getRoundingmode();
    Arithmetic a{b, op.getLoc()};
    Value x = op.getIn(), nearest = a.narrow(to, x);
    if (mode == R::to_nearest_even) {
      b.replaceOp(op, nearest);
      return success();
    }
    Value back = a.widen(from, nearest), word = a.bits(nearest);
    Value inwards = a.sub(word, a.number(word, 1)), outwards = a.add(word, a.number(word, 1));
    Value isNegative = a.test(arith::CmpIPredicate::slt, word, 0);
    Value result;
    if (mode == R::toward_zero) {
      result = a.pick(a.testReal(F::OGT, a.size(back), a.size(x)), inwards, word);
    } else if (mode == R::downward) {
      Value down = a.pick(isNegative, outwards, inwards);
      result = a.pick(a.testReal(F::OGT, back, x), down, word);
    } else if (mode == R::upward) {
      Value up = a.pick(isNegative, inwards, outwards);
      result = a.pick(a.testReal(F::OLT, back, x), up, word);
    } else { // Ties away from zero: even was chosen, and the next number outwards is as near.
      Value next = a.widen(from, a.cast(to, outwards));
      Value below = arith::SubFOp::create(b, op.getLoc(), a.size(x), a.size(back));
      Value above = arith::SubFOp::create(b, op.getLoc(), a.size(next), a.size(x));
      Value tie = a.both(a.testReal(F::OEQ, below, above), a.testReal(F::OGT, below, a.real(below, 0)));
      result = a.pick(tie, outwards, word);
    }
    b.replaceOp(op, a.cast(to, result));
    return success();
  }
};

struct PrepareSmallFloats : public PassWrapper<PrepareSmallFloats, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareSmallFloats)

  StringRef getArgument() const final { return "offload-prepare-small-floats"; }
  StringRef getDescription() const final { return "Write out conversions of floats with 4 to 8 bits"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    bool refused = getOperation()
                       ->walk([](Operation *op) {
                         std::optional<arith::RoundingMode> mode;
                         if (auto narrow = dyn_cast<arith::TruncFOp>(op))
                           mode = narrow.getRoundingmode();
                         else if (auto scaling = dyn_cast<arith::ScalingTruncFOp>(op))
                           mode = scaling.getRoundingmode();
                         if (nearestEven(mode) || !isSmallFloat(op->getResult(0).getType()))
                           return WalkResult::advance();
                         op->emitError("conversions to ")
                             << getElementTypeOrSelf(op->getResult(0).getType())
                             << " round to nearest, ties to even, only: leave out '"
                             << arith::stringifyRoundingMode(*mode) << "'";
                         return WalkResult::interrupt();
                       })
                       .wasInterrupted();
    if (refused)
      return signalPassFailure();
    reduceInF32();
    printInF32();
    RewritePatternSet scaling(&getContext());
    arith::populateExpandScalingExtTruncPatterns(scaling);
    if (failed(applyPatternsGreedily(getOperation(), std::move(scaling))) || failed(computeInF32()))
      return signalPassFailure();
    // Upstream marks its conversions so that pairs of them fold, and a sum of three would be rounded once.
    getOperation()->walk([](Operation *op) {
      if (auto widen = dyn_cast<arith::ExtFOp>(op); widen && isSmallFloat(widen.getIn().getType()))
        widen.removeFastmathAttr();
      else if (auto narrow = dyn_cast<arith::TruncFOp>(op); narrow && isSmallFloat(narrow.getType()))
        narrow.removeFastmathAttr();
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<Widen, Narrow, NarrowDirected>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  /// Reductions of lanes and blocks are made of arithmetic later than what this pass sees. Their sums are
  /// rounded once, at the end.
  void reduceInF32() {
    getOperation()->walk([](Operation *op) {
      auto all = dyn_cast<gpu::AllReduceOp>(op);
      Type type = isa<gpu::AllReduceOp, gpu::SubgroupReduceOp>(op) ? op->getOperand(0).getType() : Type();
      if (!type || !isSmallFloat(type) || (all && !all.getOp())) // or in the author's words
        return;
      OpBuilder b(op);
      Type wide = withElement(type, b.getF32Type());
      op->setOperand(0, arith::ExtFOp::create(b, op->getLoc(), wide, op->getOperand(0)));
      op->getResult(0).setType(wide);
      b.setInsertionPointAfter(op);
      auto narrow = arith::TruncFOp::create(b, op->getLoc(), type, op->getResult(0));
      op->getResult(0).replaceAllUsesExcept(narrow, narrow);
    });
  }

  /// What is printed becomes f64 later than what this pass sees.
  void printInF32() {
    getOperation()->walk([](gpu::PrintfOp op) {
      OpBuilder b(op);
      for (OpOperand &operand : op->getOpOperands())
        if (Type type = operand.get().getType(); isSmallFloat(type))
          operand.set(
              arith::ExtFOp::create(b, op.getLoc(), withElement(type, b.getF32Type()), operand.get()));
    });
  }

  /// Arithmetic on small floats. Not upstream's pass: that knows some of the types only.
  LogicalResult computeInF32() {
    MLIRContext *context = &getContext();
    SmallVector<Type> small = {
        Float8E5M2Type::get(context),    Float8E4M3Type::get(context),       Float8E3M4Type::get(context),
        Float8E4M3FNType::get(context),  Float8E5M2FNUZType::get(context),   Float8E4M3FNUZType::get(context),
        Float8E8M0FNUType::get(context), Float6E2M3FNType::get(context),     Float6E3M2FNType::get(context),
        Float4E2M1FNType::get(context),  Float8E4M3B11FNUZType::get(context)};
    TypeConverter converter;
    arith::populateEmulateUnsupportedFloatsConversions(converter, small, Float32Type::get(context));
    RewritePatternSet patterns(context);
    arith::populateEmulateUnsupportedFloatsPatterns(patterns, converter);
    ConversionTarget target(*context);
    arith::populateEmulateUnsupportedFloatsLegality(target, converter);
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }
};

} // namespace

Value narrowToOdd(OpBuilder &b, Location loc, Value wide) {
  Arithmetic a{b, loc};
  Value near = a.narrow(withElement(wide.getType(), b.getF32Type()), wide);
  Value back = a.widen(wide.getType(), near), word = a.bits(near);
  Value outside = a.testReal(arith::CmpFPredicate::OGT, a.size(back), a.size(wide));
  Value down = a.pick(outside, a.sub(word, a.number(word, 1)), word);
  Value inexact = a.testReal(arith::CmpFPredicate::ONE, back, wide);
  return a.cast(near.getType(), a.pick(inexact, a.bor(down, a.number(word, 1)), word));
}

void registerPrepareSmallFloatsPass() { PassRegistration<PrepareSmallFloats>(); }

} // namespace offload
