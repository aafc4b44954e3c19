//===- small_floats.cpp - 16-bit floats without instructions for them -----===//

#include "codegen/math/number.h"
#include "codegen/math/vector_math.h"

#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {
namespace {

Value *withBits(Builder &b, Value *value, unsigned bits) {
  return b.CreateZExtOrTrunc(value, value->getType()->getWithNewBitWidth(bits));
}

/// f32 from the bits of a 16-bit float.
Number extended(Number bits, bool half) {
  if (!half)
    return (bits << 16).asFloat();
  // The exponent's bias differs by 112; a product brings denormals to their place, too.
  Number magnitude = (bits & 0x7FFF) << 13;
  Number scaled = (magnitude.asFloat() * 0x1p112).bits();
  Number special = magnitude | 0x7F800000; // infinity and NaN
  Number quiet = select((bits & 0x3FF) != 0, special | 0x400000, special);
  Number result = select((bits & 0x7FFF) >= 0x7C00, quiet, scaled);
  return (result | ((bits & 0x8000) << 16)).asFloat();
}

/// The bits of the nearest 16-bit float, in the low half; of two as near, the even one.
Number truncated(Number x, bool half) {
  Number bits = x.bits(), magnitude = bits & 0x7FFFFFFF;
  if (!half) {
    Number rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return select(magnitude > 0x7F800000, (bits >> 16) | 0x40, rounded);
  }
  Number normal = (magnitude - (112 << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  // A sum with 0.5 has the last bit of denormals where f32 has its own.
  Number denormal = (magnitude.asFloat() + 0.5).bits() - 0x3F000000;
  Number result = select(magnitude < 0x38800000, denormal, normal);
  result = select(magnitude >= 0x477FF000, x.bits().integer(0x7C00), result);
  Number nan = ((magnitude >> 13) & 0x3FF) | 0x7E00;
  result = select(magnitude > 0x7F800000, nan, result);
  return result | ((bits >> 16) & 0x8000);
}

/// f32 from f64 such that rounding it to 16 bits gives what rounding the f64 once does: toward zero, and
/// where that loses something, with the last bit set ("to odd").
Number narrowedToOdd(Number x) {
  Number near = x.narrowed(), back = near.widened();
  Number below = select(back.abs() > x.abs(), near.bits() - 1, near.bits());
  return select(back == x, near.bits(), below | 1).asFloat();
}

/// f64 from an integer, to odd where it has more bits than f64.
Number toDouble(Builder &b, Value *value, bool isSigned) {
  Type *type = value->getType()->getWithNewType(b.getDoubleTy());
  auto convert = [&](Value *integer) -> Value * {
    return isSigned ? b.CreateSIToFP(integer, type) : b.CreateUIToFP(integer, type);
  };
  if (value->getType()->getScalarSizeInBits() <= 32)
    return {b, convert(value)};
  // The last 11 of 64 bits as one. Negative numbers have the two's complement, whose last bits are as good.
  Number all{b, value}, head = all & ~int64_t(0x7FF);
  Number magnitude = isSigned ? Number{b, b.CreateBinaryIntrinsic(Intrinsic::abs, value, b.getFalse())} : all;
  Value *large = b.CreateICmpUGT(magnitude.value, magnitude.integer(int64_t(1) << 53).value);
  Number odd = select((all & 0x7FF) == 0, head, head | 0x800);
  return {b, convert(b.CreateSelect(large, odd.value, value))};
}

class Widening {
public:
  Widening(bool half, bool bfloat, bool narrows) : half(half), bfloat(bfloat), narrows(narrows) {}

  bool isSmall(Type *type) const {
    Type *element = type->getScalarType();
    return !isa<ScalableVectorType>(type) &&
           ((half && element->isHalfTy()) || (bfloat && element->isBFloatTy()));
  }

  /// The value to put in the instruction's place, or null where it stays.
  Value *replace(Instruction &instruction) const {
    Builder b(&instruction);
    if (auto *extension = dyn_cast<FPExtInst>(&instruction); extension && isSmall(extension->getSrcTy()))
      return b.CreateFPExt(extend(b, extension->getOperand(0)), extension->getDestTy());
    if (auto *truncation = dyn_cast<FPTruncInst>(&instruction)) {
      Type *type = truncation->getDestTy();
      Value *value = truncation->getOperand(0);
      bool isDouble = value->getType()->getScalarType()->isDoubleTy();
      bool small = isSmall(type), called = type->getScalarType()->isHalfTy() && isDouble && narrows;
      if (!small && !called)
        return nullptr;
      // From f64 it would round twice.
      if (isDouble)
        value = narrowedToOdd({b, value}).value;
      return small ? truncate(b, value, type) : b.CreateFPTrunc(value, type);
    }
    if (isa<SIToFPInst, UIToFPInst>(instruction) && instruction.getType()->getScalarType()->isBFloatTy() &&
        isSmall(instruction.getType()) && instruction.getOperand(0)->getType()->getScalarSizeInBits() <= 64)
      return truncate(
          b, narrowedToOdd(toDouble(b, instruction.getOperand(0), isa<SIToFPInst>(instruction))).value,
          instruction.getType());
    if (auto *compare = dyn_cast<FCmpInst>(&instruction);
        compare && isSmall(compare->getOperand(0)->getType())) {
      Value *left = extend(b, compare->getOperand(0)), *right = extend(b, compare->getOperand(1));
      return b.CreateFCmp(compare->getPredicate(), left, right);
    }
    // f32 has enough bits that the second rounding of one of these changes nothing.
    if (auto *operation = dyn_cast<BinaryOperator>(&instruction);
        operation && isSmall(operation->getType()) && operation->getOpcode() != Instruction::FRem) {
      Value *left = extend(b, operation->getOperand(0)), *right = extend(b, operation->getOperand(1));
      return truncate(b, b.CreateBinOp(operation->getOpcode(), left, right), operation->getType());
    }
    if (auto *conversion = dyn_cast<CastInst>(&instruction);
        conversion && isa<FPToSIInst, FPToUIInst>(conversion) && isSmall(conversion->getSrcTy()))
      return b.CreateCast(conversion->getOpcode(), extend(b, conversion->getOperand(0)),
                          conversion->getDestTy());
    return nullptr;
  }

private:
  static Value *extend(Builder &b, Value *value) {
    bool isHalf = value->getType()->getScalarType()->isHalfTy();
    Value *bits = b.CreateBitCast(value, value->getType()->getWithNewType(b.getInt16Ty()));
    return extended({b, withBits(b, bits, 32)}, isHalf).value;
  }
  static Value *truncate(Builder &b, Value *value, Type *type) {
    Value *bits = truncated({b, value}, type->getScalarType()->isHalfTy()).value;
    return b.CreateBitCast(withBits(b, bits, 16), type);
  }

  bool half, bfloat;
  bool narrows; // there is no instruction from f64 to f16, which would be a call for each element
};

} // namespace

void widenSmallFloats(Module &module, bool half, bool bfloat) {
  Widening widening(half, bfloat, module.getTargetTriple().isX86());
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (Value *value = widening.replace(instruction)) {
        instruction.replaceAllUsesWith(value);
        instruction.eraseFromParent();
      }
}

void chooseTruth(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *conversion = dyn_cast<SIToFPInst>(&instruction);
      if (!conversion || !conversion->getSrcTy()->isIntOrIntVectorTy(1) ||
          !conversion->getType()->getScalarType()->isBFloatTy())
        continue;
      Value *number =
          Builder(conversion)
              .CreateSelect(conversion->getOperand(0), ConstantFP::get(conversion->getType(), -1.0),
                            ConstantFP::get(conversion->getType(), 0.0));
      conversion->replaceAllUsesWith(number);
      conversion->eraseFromParent();
    }
}

} // namespace offload
