//===- prepare_math.cpp - offload-prepare-math ----------------------------===//
//
// Brings the math dialect to what every target's lowering takes and computes correctly. MLIR's lowerings each
// leave out some operations, element types or vectors; these rules are the same for all targets:
//
//  * vectors of a rank other than 1 become vectors of rank 1;
//  * floats narrower than f32 are computed in f32, whose library functions are precise enough to round once;
//  * integers become bf16 with one rounding;
//  * classification becomes tests of bits, so that no flag of fast math can fold it;
//  * clampf, sincos, and powers with whole exponents (powers.cpp) are written out;
//  * expm1 and log1p keep the sign of zero, which AMD's library drops;
//  * angles of NVIDIA's approximations are brought near 0;
//  * counting and absolute values of integers, and trunc, become LLVM's intrinsics; for GPUs, LLVM's other
//    intrinsics of mathematics become operations of this dialect first.
//
// The option `library` names the library that the target's lowering calls: nvvm, rocdl or libm.
//
//===----------------------------------------------------------------------===//

#include "device/numeric.h"
#include "device/prepare_device.h"
#include "passes.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToROCDL/MathToROCDL.h"
#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace offload {
namespace {

bool isScalable(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.isScalable();
}

/// The same operation on other operands, with other result types.
Operation *rebuild(PatternRewriter &b, Operation *op, ValueRange operands, TypeRange results) {
  OperationState state(op->getLoc(), op->getName().getStringRef(), operands, results, op->getAttrs());
  return b.create(state);
}

struct MathPattern : public RewritePattern {
  MathPattern(MLIRContext *context, PatternBenefit benefit = 1)
      : RewritePattern(MatchAnyOpTypeTag(), benefit, context) {}
  static bool isMath(Operation *op) {
    return isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
           llvm::none_of(op->getOperandTypes(), isScalable);
  }
};

/// Operations of other dialects that the lowerings take on vectors of rank 1 only.
bool isOfRankOne(Operation *op) {
  return isa<arith::AddUIExtendedOp, arith::MulSIExtendedOp, arith::MulUIExtendedOp>(op);
}

/// vector<2x3xf32> and vector<f32> as vector<6xf32> and vector<1xf32>.
struct Flatten : public MathPattern {
  using MathPattern::MathPattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &b) const override {
    auto shaped = op->getNumResults() ? dyn_cast<VectorType>(op->getResult(0).getType()) : VectorType();
    if (!(isMath(op) || isOfRankOne(op)) || !shaped || shaped.isScalable() || shaped.getRank() == 1)
      return failure();
    auto flat = [&](Type type) -> Type {
      return VectorType::get({shaped.getNumElements()}, getElementTypeOrSelf(type));
    };
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(vector::ShapeCastOp::create(b, op->getLoc(), flat(operand.getType()), operand));
    SmallVector<Type> types = llvm::map_to_vector(op->getResultTypes(), flat);
    Operation *inner = rebuild(b, op, operands, types);
    SmallVector<Value> results;
    for (auto [result, type] : llvm::zip(inner->getResults(), op->getResultTypes()))
      results.push_back(vector::ShapeCastOp::create(b, op->getLoc(), type, result));
    b.replaceOp(op, results);
    return success();
  }
};

/// Functions of f16, bf16 and narrower floats through f32. What only looks at bits stays; fma of 16 bits has
/// its own rule, that of fewer is exact in f64 and so rounded once.
struct ComputeInF32 : public MathPattern {
  using MathPattern::MathPattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &b) const override {
    if (!isMath(op) || op->getNumOperands() == 0)
      return failure();
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
    if (!element || element.getWidth() >= 32)
      return failure();
    bool bits = isa<math::AbsFOp, math::ClampFOp, math::CopySignOp, math::FmaOp, math::IsFiniteOp,
                    math::IsInfOp, math::IsNaNOp, math::IsNormalOp>(op);
    if (bits && element.getWidth() == 16)
      return failure();
    Type held = isa<math::FmaOp>(op) ? b.getF64Type() : b.getF32Type();
    auto wide = [&](Type type) -> Type {
      return getElementTypeOrSelf(type) == element ? withElement(type, held) : type;
    };
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(wide(operand.getType()) == operand.getType()
                             ? operand
                             : arith::ExtFOp::create(b, op->getLoc(), wide(operand.getType()), operand));
    SmallVector<Type> types = llvm::map_to_vector(op->getResultTypes(), wide);
    Operation *inner = rebuild(b, op, operands, types);
    SmallVector<Value> results;
    for (auto [result, type] : llvm::zip(inner->getResults(), op->getResultTypes()))
      results.push_back(result.getType() == type ? Value(result)
                                                 : arith::TruncFOp::create(b, op->getLoc(), type, result));
    b.replaceOp(op, results);
    return success();
  }
};

/// Library functions on vectors, for GPUs: one call per element. The lowerings would make some of them
/// intrinsics, which AMD's code generator takes for permission to approximate (sin, cos) or does not know
/// (tanh).
struct PerElement : public MathPattern {
  using MathPattern::MathPattern;
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &b) const override {
    auto shaped = op->getNumResults() ? dyn_cast<VectorType>(op->getResult(0).getType()) : VectorType();
    if (!isMath(op) || !shaped || shaped.getRank() != 1 || !isa<FloatType>(shaped.getElementType()) ||
        isa<math::AbsFOp, math::CopySignOp, math::FmaOp, math::ClampFOp, math::TruncOp>(op))
      return failure();
    Location loc = op->getLoc();
    SmallVector<SmallVector<Value>> results(op->getNumResults());
    for (int64_t i = 0; i < shaped.getNumElements(); ++i) {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(vector::ExtractOp::create(b, loc, operand, i));
      SmallVector<Type> types(op->getNumResults(), shaped.getElementType());
      for (auto [all, one] : llvm::zip(results, rebuild(b, op, operands, types)->getResults()))
        all.push_back(one);
    }
    SmallVector<Value> vectors;
    for (auto [elements, type] : llvm::zip(results, op->getResultTypes()))
      vectors.push_back(vector::FromElementsOp::create(b, loc, type, elements));
    b.replaceOp(op, vectors);
    return success();
  }
};

/// The promise that there is no NaN makes LLVM choose a minimum or maximum of bf16 that AMD's code generator
/// cannot select.
template <typename Op> struct DropNoNaN : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    arith::FastMathFlags flags = op.getFastmath();
    if (!getElementTypeOrSelf(op.getType()).isBF16() ||
        !arith::bitEnumContainsAny(flags, arith::FastMathFlags::nnan))
      return failure();
    b.modifyOpInPlace(op, [&] { op.setFastmath(flags & ~arith::FastMathFlags::nnan); });
    return success();
  }
};

/// isnan, isinf, isfinite, isnormal: unsigned comparisons of the bits without the sign.
template <typename Op> struct Classify : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Type type = op.getOperand().getType();
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    if (element.getWidth() < 16 || element.getWidth() > 64 || isScalable(type))
      return failure();
    Location loc = op.getLoc();
    const llvm::fltSemantics &semantics = element.getFloatSemantics();
    Type integers = bitsType(type);
    auto bitsOf = [&](const APFloat &value) -> Value {
      return constantOf(b, loc, integers,
                        b.getIntegerAttr(getElementTypeOrSelf(integers), value.bitcastToAPInt()));
    };
    Value bits = arith::BitcastOp::create(b, loc, integers, op.getOperand());
    Value mask = constantOf(
        b, loc, integers,
        b.getIntegerAttr(getElementTypeOrSelf(integers), APInt::getSignedMaxValue(element.getWidth())));
    Value size = arith::AndIOp::create(b, loc, bits, mask);
    Value infinity = bitsOf(APFloat::getInf(semantics));
    arith::CmpIPredicate predicate = arith::CmpIPredicate::ult;
    if constexpr (std::is_same_v<Op, math::IsNaNOp>)
      predicate = arith::CmpIPredicate::ugt;
    if constexpr (std::is_same_v<Op, math::IsInfOp>)
      predicate = arith::CmpIPredicate::eq;
    if constexpr (std::is_same_v<Op, math::IsNormalOp>) {
      // Between the two with one comparison: what is below the smallest wraps around to large numbers.
      Value smallest = bitsOf(APFloat::getSmallestNormalized(semantics));
      size = arith::SubIOp::create(b, loc, size, smallest);
      infinity = arith::SubIOp::create(b, loc, infinity, smallest);
    }
    b.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, size, infinity);
    return success();
  }
};

/// The dialect's text has the bounds the wrong way round; what it means is max(min(value, upper), lower).
struct Clamp : public OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ClampFOp op, PatternRewriter &b) const override {
    Value least = arith::MinimumFOp::create(b, op.getLoc(), op.getValue(), op.getMax(), op.getFastmath());
    b.replaceOpWithNewOp<arith::MaximumFOp>(op, least, op.getMin(), op.getFastmath());
    return success();
  }
};

/// The lowering of sums and products with a second result takes index for the type of a struct's field.
template <typename Op> struct ExtendedIndex : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Type type = op->getOperand(0).getType(), words = withElement(type, b.getI64Type());
    if (!getElementTypeOrSelf(type).isIndex() || isScalable(type))
      return failure();
    Location loc = op.getLoc();
    Value x = arith::IndexCastOp::create(b, loc, words, op->getOperand(0));
    Value y = arith::IndexCastOp::create(b, loc, words, op->getOperand(1));
    SmallVector<Type> types;
    for (Type result : op->getResultTypes())
      types.push_back(result == type ? words : result);
    SmallVector<Value> results;
    for (auto [value, result] : llvm::zip(rebuild(b, op, {x, y}, types)->getResults(), op->getResultTypes()))
      results.push_back(result == type ? Value(arith::IndexCastOp::create(b, loc, type, value))
                                       : Value(value));
    b.replaceOp(op, results);
    return success();
  }
};

/// The upper bit of a product of bits is 0, also where the lower one is a sign; what LLVM 22 makes of
/// products of i2 without optimization is wrong for AMD's and NVIDIA's chips.
template <typename Op> struct ProductOfBits : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Type type = op.getLow().getType();
    if (!getElementTypeOrSelf(type).isInteger(1))
      return failure();
    Value both = arith::AndIOp::create(b, op.getLoc(), op.getLhs(), op.getRhs());
    b.replaceOp(op, {both, arith::ConstantOp::create(b, op.getLoc(), b.getZeroAttr(type))});
    return success();
  }
};

struct SinCos : public OpRewritePattern<math::SincosOp> {
  SinCos(MLIRContext *context, bool libraryHasIt) : OpRewritePattern(context), libraryHasIt(libraryHasIt) {}
  LogicalResult matchAndRewrite(math::SincosOp op, PatternRewriter &b) const override {
    if (libraryHasIt && !isa<VectorType>(op.getOperand().getType()))
      return failure();
    Value sine = math::SinOp::create(b, op.getLoc(), op.getOperand(), op.getFastmath());
    Value cosine = math::CosOp::create(b, op.getLoc(), op.getOperand(), op.getFastmath());
    b.replaceOp(op, {sine, cosine});
    return success();
  }
  bool libraryHasIt;
};

/// fma of 16-bit floats, rounded once. The product of two is exact in f64. For f16 the sum is exact where it
/// matters; for bf16, of much larger range, an inexact sum is made odd, so that narrowing it sees on which
/// side of a tie it lies.
struct ShortFma : public OpRewritePattern<math::FmaOp> {
  ShortFma(MLIRContext *context, bool f16, bool bf16) : OpRewritePattern(context), f16(f16), bf16(bf16) {}
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &b) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    if (isScalable(type) || !((f16 && element.isF16()) || (bf16 && element.isBF16())))
      return failure();
    Location loc = op.getLoc();
    Type wide = withElement(type, b.getF64Type()), words = withElement(type, b.getI64Type());
    auto widened = [&](Value value) -> Value { return arith::ExtFOp::create(b, loc, wide, value); };
    Value left = widened(op.getA());
    Value x = arith::MulFOp::create(b, loc, left, widened(op.getB()));
    Value y = widened(op.getC());
    Value sum = arith::AddFOp::create(b, loc, x, y);
    if (element.isBF16()) {
      // Knuth's two-sum: x + y = sum + error, exactly.
      auto sub = [&](Value l, Value r) -> Value { return arith::SubFOp::create(b, loc, l, r); };
      Value part = sub(sum, x);
      Value ofX = sub(x, sub(sum, part));
      Value error = arith::AddFOp::create(b, loc, ofX, sub(y, part));
      Value zero = floatOf(b, loc, wide, 0);
      Value bits = arith::BitcastOp::create(b, loc, words, sum), one = integerOf(b, loc, words, 1);
      auto test = [&](arith::CmpFPredicate p, Value l, Value r) -> Value {
        return arith::CmpFOp::create(b, loc, p, l, r);
      };
      // Not a number where the sum is not finite: no comparison with it holds.
      Value inexact = test(arith::CmpFPredicate::ONE, error, zero);
      Value last = arith::AndIOp::create(b, loc, bits, one);
      Value even = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, last, integerOf(b, loc, words, 0));
      Value isMore = test(arith::CmpFPredicate::OGT, error, zero);
      Value isPositive = test(arith::CmpFPredicate::OGT, sum, zero);
      Value outwards = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, isMore, isPositive);
      Value next = arith::AddIOp::create(b, loc, bits, one);
      Value odd = arith::SelectOp::create(b, loc, outwards, next, arith::SubIOp::create(b, loc, bits, one));
      Value change = arith::AndIOp::create(b, loc, inexact, even);
      sum = arith::BitcastOp::create(b, loc, wide, arith::SelectOp::create(b, loc, change, odd, bits));
    }
    b.replaceOpWithNewOp<arith::TruncFOp>(op, type, sum);
    return success();
  }
  bool f16, bf16;
};

/// The same where the processor has it: MLIR's lowering for NVIDIA computes in f32 and rounds twice.
struct NativeFma : public OpRewritePattern<math::FmaOp> {
  NativeFma(MLIRContext *context, bool bf16) : OpRewritePattern(context, /*benefit=*/2), bf16(bf16) {}
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &b) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    auto vector = dyn_cast<VectorType>(type);
    if (isScalable(type) || (vector && vector.getRank() != 1) ||
        !(element.isF16() || (bf16 && element.isBF16())))
      return failure();
    b.replaceOpWithNewOp<LLVM::FMAOp>(op, type, op.getA(), op.getB(), op.getC());
    return success();
  }
  bool bf16;
};

/// Integers to bf16, rounded once; LLVM goes through f32, which rounds as well. Bits that no rounding to bf16
/// looks at, but for whether there are any, become one, until f32 holds the rest: 14 bits of a number that
/// has more than 24, 28 of more than 38, and so on.
template <typename Op> struct IntegerToBfloat : public OpRewritePattern<Op> {
  /// `native` is the width of integers up to which the processor converts them itself.
  IntegerToBfloat(MLIRContext *context, unsigned native) : OpRewritePattern<Op>(context), native(native) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    constexpr bool isSigned = std::is_same_v<Op, arith::SIToFPOp>;
    constexpr unsigned held = 24, step = 14;
    Value x = op.getIn();
    Type type = x.getType();
    unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (!getElementTypeOrSelf(op.getType()).isBF16() || isScalable(type) || width <= std::max(held, native))
      return failure();
    Location loc = op.getLoc();
    auto number = [&](const APInt &value) {
      return constantOf(b, loc, type, b.getIntegerAttr(getElementTypeOrSelf(type), value));
    };
    for (unsigned size = held, lost = step; size + isSigned < width; size += step, lost += step) {
      APInt limit = APInt::getOneBitSet(width, size), low = APInt::getLowBitsSet(width, lost);
      Value place = isSigned ? arith::AddIOp::create(b, loc, x, number(limit)).getResult() : x;
      Value large = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, place,
                                          number(isSigned ? limit.shl(1) : limit));
      Value rest = arith::AndIOp::create(b, loc, x, number(low)), zero = number(APInt::getZero(width));
      Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, rest, zero);
      Value odd = arith::SelectOp::create(b, loc, any, number(low + 1), zero);
      Value kept = arith::OrIOp::create(b, loc, arith::AndIOp::create(b, loc, x, number(~low)), odd);
      x = arith::SelectOp::create(b, loc, large, kept, x);
    }
    Value single = Op::create(b, loc, withElement(type, b.getF32Type()), x);
    b.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), single);
    return success();
  }

  unsigned native;
};

struct VectorFma : public OpRewritePattern<vector::FMAOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::FMAOp op, PatternRewriter &b) const override {
    if (isScalable(op.getType()))
      return failure();
    b.replaceOpWithNewOp<math::FmaOp>(op, op.getLhs(), op.getRhs(), op.getAcc());
    return success();
  }
};

/// An operation that is an intrinsic of LLVM on every target.
template <typename Op> struct ToIntrinsic : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &b) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    auto vector = dyn_cast<VectorType>(type);
    if (isScalable(type) || (vector && vector.getRank() != 1) || isSmallFloat(type))
      return failure();
    Location loc = op.getLoc();
    Value operand = op.getOperand();
    if (element.isIndex()) { // is 64 bits wide in every target's lowering
      Type words = withElement(type, b.getI64Type());
      operand = arith::IndexCastOp::create(b, loc, words, operand);
      b.replaceOpWithNewOp<arith::IndexCastOp>(op, type, create(b, loc, words, operand));
      return success();
    }
    b.replaceOp(op, create(b, loc, type, operand));
    return success();
  }
  static Value create(PatternRewriter &b, Location loc, Type type, Value operand) {
    if constexpr (std::is_same_v<Op, math::AbsIOp>)
      return LLVM::AbsOp::create(b, loc, type, operand, /*is_int_min_poison=*/false);
    else if constexpr (std::is_same_v<Op, math::CountLeadingZerosOp>)
      return LLVM::CountLeadingZerosOp::create(b, loc, type, operand, /*is_zero_poison=*/false);
    else if constexpr (std::is_same_v<Op, math::CountTrailingZerosOp>)
      return LLVM::CountTrailingZerosOp::create(b, loc, type, operand, /*is_zero_poison=*/false);
    else if constexpr (std::is_same_v<Op, math::CtPopOp>)
      return LLVM::CtPopOp::create(b, loc, type, operand);
    else
      return LLVM::FTruncOp::create(b, loc, type, operand);
  }
};

/// expm1 and log1p have the sign of their argument, but AMD's library gives +0 for some that are -0.
void keepSignOfZero(Operation *module) {
  module->walk([](Operation *op) {
    if (!isa<math::ExpM1Op, math::Log1pOp>(op))
      return;
    auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
    if (flags && bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::nsz))
      return;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    auto withSign = LLVM::CopySignOp::create(b, op->getLoc(), result.getType(), result, op->getOperand(0));
    result.replaceAllUsesExcept(withSign, withSign);
  });
}

/// NVIDIA's approximations of sine, cosine and tangent, which flags choose, multiply by 1/(2 pi) with one
/// rounding: of an angle of 10000 all but three digits were lost. They get one within half a turn, of angles
/// up to 1e8; of larger ones, whose neighbours are several turns apart, another.
void bringAnglesNear(Operation *module) {
  module->walk([](Operation *op) {
    if (!isa<math::SinOp, math::CosOp, math::TanOp, math::SincosOp>(op) ||
        !op->getOperand(0).getType().isF32())
      return;
    auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
    if (!flags || !bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::afn))
      return;
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value angle = op->getOperand(0);
    auto number = [&](float value) -> Value {
      return arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(value));
    };
    Value turns = arith::MulFOp::create(b, loc, angle, number(0x1.45f306p-3f));
    turns = math::RoundEvenOp::create(b, loc, turns);
    // -2 pi in two parts.
    Value near = math::FmaOp::create(b, loc, turns, number(-0x1.921fb6p+2f), angle);
    near = math::FmaOp::create(b, loc, turns, number(0x1.777a5cp-23f), near);
    if (!bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::nsz)) { // -0 stays
      Value isNear = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, turns, number(0));
      near = arith::SelectOp::create(b, loc, isNear, angle, near);
    }
    op->setOperand(0, near);
  });
}

struct PrepareMath : public PassWrapper<PrepareMath, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareMath)
  PrepareMath() = default;
  PrepareMath(const PrepareMath &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-prepare-math"; }
  StringRef getDescription() const final { return "Bring math operations to what the lowerings take"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    MLIRContext *context = &getContext();
    bool nvidia = library == "nvvm", amd = library == "rocdl";
    // Before the first call of a library's function is made.
    if (auto module = dyn_cast<gpu::GPUModuleOp>(getOperation()); module && failed(givePlainNames(module)))
      return signalPassFailure();
    if (nvidia || amd)
      intrinsicsToMath(getOperation());
    libraryCallsToMath(getOperation(), library);
    RewritePatternSet patterns(context);
    patterns.add<Flatten>(context, PatternBenefit(3));
    patterns.add<ComputeInF32>(context, PatternBenefit(2));
    patterns.add<Classify<math::IsFiniteOp>, Classify<math::IsInfOp>, Classify<math::IsNaNOp>,
                 Classify<math::IsNormalOp>, Clamp, VectorFma, ToIntrinsic<math::AbsIOp>,
                 ToIntrinsic<math::CountLeadingZerosOp>, ToIntrinsic<math::CountTrailingZerosOp>,
                 ToIntrinsic<math::CtPopOp>, ToIntrinsic<math::TruncOp>>(context);
    patterns.add<SinCos>(context, nvidia);
    addPowerPatterns(patterns, library);
    if (nvidia || amd)
      patterns.add<PerElement>(context);
    patterns.add<IntegerToBfloat<arith::SIToFPOp>, IntegerToBfloat<arith::UIToFPOp>>(
        context, integersToBfloat ? 64 : 0);
    patterns.add<ExtendedIndex<arith::AddUIExtendedOp>, ExtendedIndex<arith::MulSIExtendedOp>,
                 ExtendedIndex<arith::MulUIExtendedOp>, ProductOfBits<arith::MulSIExtendedOp>,
                 ProductOfBits<arith::MulUIExtendedOp>>(context);
    if (amd)
      patterns.add<DropNoNaN<arith::MaximumFOp>, DropNoNaN<arith::MinimumFOp>>(context);
    if (nvidia)
      patterns.add<NativeFma>(context, shortFma);
    patterns.add<ShortFma>(context, /*f16=*/!nvidia && !amd, /*bf16=*/true);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();

    if (amd)
      keepSignOfZero(getOperation());
    if (nvidia)
      bringAnglesNear(getOperation());

    // The lowering of AMD's modules has two patterns for many functions, of this library and of LLVM's
    // intrinsics, which have no code there; which one wins differs from run to run. So the calls are made
    // here.
    LLVMTypeConverter converter(context);
    RewritePatternSet calls(context);
    if (nvidia)
      populateLibDeviceConversionPatterns(converter, calls);
    else if (amd)
      populateMathToROCDLConversionPatterns(converter, calls, std::nullopt);
    else
      return;
    ConversionTarget target(*context); // what no pattern takes stays
    target.addLegalDialect<LLVM::LLVMDialect, vector::VectorDialect>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(calls))))
      signalPassFailure();
  }

  Option<std::string> library{*this, "library", llvm::cl::init("libm"),
                              llvm::cl::desc("nvvm, rocdl or libm")};
  Option<bool> shortFma{*this, "bf16-fma", llvm::cl::init(false),
                        llvm::cl::desc("the processor has fma of bf16")};
  Option<bool> integersToBfloat{*this, "bf16-casts", llvm::cl::init(false),
                                llvm::cl::desc("the processor converts integers to bf16")};
};

} // namespace

void registerPrepareMathPass() { PassRegistration<PrepareMath>(); }

} // namespace offload
