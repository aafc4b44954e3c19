//===- zero_signs.cpp - Signs of zeros on AMD GPUs ------------------------===//

#include "codegen/gpu/zero_signs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {

/// How far up LLVM looks for a sign that it can turn over; it gives up after six steps.
constexpr unsigned kDeepest = 6;

/// The elements of a constant that are 0.0, as an i1 or a vector of them, or null if none is.
static Constant *positiveZeros(Value *value) {
  auto *constant = dyn_cast<Constant>(value);
  if (!constant)
    return nullptr;
  auto isZero = [](const Constant *element) {
    auto *number = dyn_cast_or_null<ConstantFP>(element);
    return number && number->getValueAPF().isPosZero();
  };
  auto *type = dyn_cast<FixedVectorType>(constant->getType());
  if (!type)
    return isZero(constant) ? ConstantInt::getTrue(constant->getContext()) : nullptr;
  SmallVector<Constant *> elements;
  for (unsigned i = 0; i < type->getNumElements(); ++i)
    elements.push_back(
        ConstantInt::getBool(constant->getContext(), isZero(constant->getAggregateElement(i))));
  return any_of(elements, [](Constant *each) { return each->isOneValue(); }) ? ConstantVector::get(elements)
                                                                             : nullptr;
}

static bool hasNegatives(const Constant *constant) {
  auto isNegative = [](const Constant *element) {
    auto *number = dyn_cast_or_null<ConstantFP>(element);
    return number && number->isNegative();
  };
  auto *type = dyn_cast<FixedVectorType>(constant->getType());
  return type ? any_of(seq(type->getNumElements()),
                       [&](unsigned i) { return isNegative(constant->getAggregateElement(i)); })
              : isNegative(constant);
}

/// Whether LLVM may have the negative of a value for no more than the value.
static bool turnsOver(Value *value, unsigned depth = 0) {
  if (match(value, m_FNeg(m_Value())))
    return true;
  if (auto *constant = dyn_cast<Constant>(value))
    return hasNegatives(constant);
  auto *made = dyn_cast<Instruction>(value);
  if (!made || depth == kDeepest || isa<PHINode, LoadInst>(made))
    return false;
  return any_of(made->operands(), [&](Value *operand) {
    return operand->getType()->isFPOrFPVectorTy() && turnsOver(operand, depth + 1);
  });
}

/// Which elements of a sum are zero plus a number that LLVM may take for that number's negative.
static Constant *zerosOfSum(Instruction &sum) {
  Value *left = nullptr, *right = nullptr;
  if (match(&sum, m_FSub(m_Value(left), m_Value())))
    return positiveZeros(left);
  if (match(&sum, m_FAdd(m_Value(left), m_Value(right)))) {
    if (isa<Constant>(left))
      std::swap(left, right);
    return turnsOver(left) ? positiveZeros(right) : nullptr;
  }
  auto *call = dyn_cast<IntrinsicInst>(&sum);
  if (call && (call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::fmuladd) &&
      (turnsOver(call->getArgOperand(0)) || turnsOver(call->getArgOperand(1))))
    return positiveZeros(call->getArgOperand(2));
  return nullptr;
}

static void chooseZero(Instruction &sum, Constant *zeros) {
  SmallVector<Use *> uses(make_pointer_range(sum.uses()));
  IRBuilder<> b(sum.getNextNode());
  Constant *zero = ConstantFP::getZero(sum.getType());
  Value *isZero = b.CreateAnd(b.CreateFCmpOEQ(&sum, zero), zeros);
  // A product too small for its type is rounded to a zero with its sign, and is none in the sum.
  if (auto *fused = dyn_cast<IntrinsicInst>(&sum); fused && fused->getIntrinsicID() == Intrinsic::fma)
    isZero = b.CreateAnd(isZero, b.CreateOr(b.CreateFCmpOEQ(fused->getArgOperand(0), zero),
                                            b.CreateFCmpOEQ(fused->getArgOperand(1), zero)));
  Value *chosen = b.CreateSelect(isZero, zero, &sum);
  for (Use *use : uses)
    use->set(chosen);
}

static void writeRounded(FPTruncInst &rounded) {
  auto *product = dyn_cast<Instruction>(rounded.getOperand(0));
  if (!product || product->getOpcode() != Instruction::FMul || product->hasNoSignedZeros() ||
      !product->getType()->getScalarType()->isFloatTy() || !rounded.getType()->getScalarType()->isHalfTy())
    return;
  IRBuilder<> b(&rounded);
  b.setFastMathFlags(product->getFastMathFlags());
  Constant *zero = ConstantFP::getZero(product->getType(), /*Negative=*/true);
  Value *same = b.CreateIntrinsic(Intrinsic::fma, {product->getType()},
                                  {product->getOperand(0), product->getOperand(1), zero});
  rounded.setOperand(0, same);
}

void keepZeroSigns(Module &module, bool mixes) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *rounded = dyn_cast<FPTruncInst>(&instruction);
      if (rounded && mixes)
        writeRounded(*rounded);
      if (!isa<FPMathOperator>(&instruction) || instruction.hasNoSignedZeros())
        continue;
      if (Constant *zeros = zerosOfSum(instruction))
        chooseZero(instruction, zeros);
    }
}

} // namespace offload
