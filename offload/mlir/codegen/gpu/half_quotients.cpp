//===- half_quotients.cpp - Approximate division of f16 on GPUs -------------===//

#include "codegen/gpu/half_quotients.h"

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {

static bool isHalfQuotient(const Instruction &instruction) {
  return instruction.getOpcode() == Instruction::FDiv && instruction.getType()->getScalarType()->isHalfTy();
}

/// Whether LLVM may make it a product with a constant that has all its digits.
static bool isProduct(const Instruction &quotient) {
  auto *by = dyn_cast<Constant>(quotient.getOperand(1));
  Constant *one = ConstantFP::get(quotient.getType(), 1.0);
  Constant *reciprocal =
      by ? ConstantFoldBinaryOpOperands(Instruction::FDiv, one, by, quotient.getDataLayout()) : nullptr;
  return reciprocal && reciprocal->isNormalFP();
}

void keepHalfQuotients(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isHalfQuotient(instruction) && instruction.hasAllowReciprocal() && !isProduct(instruction)) {
        instruction.setHasAllowReciprocal(false);
        instruction.setHasApproxFunc(true);
      }
}

static void write(Instruction &quotient) {
  IRBuilder<> b(&quotient);
  b.setFastMathFlags(quotient.getFastMathFlags());
  Type *type = quotient.getType(), *wide = type->getWithNewType(b.getFloatTy());
  Value *by = b.CreateFPExt(quotient.getOperand(1), wide), *reciprocal = PoisonValue::get(wide);
  if (auto *vector = dyn_cast<FixedVectorType>(wide))
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      reciprocal = b.CreateInsertElement(
          reciprocal, b.CreateUnaryIntrinsic(Intrinsic::amdgcn_rcp, b.CreateExtractElement(by, i)), i);
  else
    reciprocal = b.CreateUnaryIntrinsic(Intrinsic::amdgcn_rcp, by);
  Value *product = b.CreateFMul(b.CreateFPExt(quotient.getOperand(0), wide), reciprocal);
  Value *result = b.CreateFPTrunc(product, type);
  result->takeName(&quotient);
  quotient.replaceAllUsesWith(result);
  quotient.eraseFromParent();
}

void writeHalfQuotients(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      // A reciprocal that is infinite in f16 is meant to be.
      if (isHalfQuotient(instruction) && instruction.hasApproxFunc() &&
          !match(instruction.getOperand(0), m_CombineOr(m_SpecificFP(1.0), m_SpecificFP(-1.0))))
        write(instruction);
}

} // namespace offload
