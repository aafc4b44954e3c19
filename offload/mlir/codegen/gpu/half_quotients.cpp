//===- half_quotients.cpp - Approximate division of f16 on AMD GPUs --------===//

#include "codegen/gpu/half_quotients.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {

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
      if (instruction.getOpcode() == Instruction::FDiv && instruction.hasApproxFunc() &&
          instruction.getType()->getScalarType()->isHalfTy() &&
          !match(instruction.getOperand(0), m_CombineOr(m_SpecificFP(1.0), m_SpecificFP(-1.0))))
        write(instruction);
}

} // namespace offload
