//===- zero_signs.cpp - Products that AMD GPUs round to 16 bits -----------===//

#include "codegen/zero_signs.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {

void keepZeroSigns(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *rounded = dyn_cast<FPTruncInst>(&instruction);
      auto *product = rounded ? dyn_cast<Instruction>(rounded->getOperand(0)) : nullptr;
      if (!product || product->getOpcode() != Instruction::FMul || product->hasNoSignedZeros() ||
          !product->getType()->getScalarType()->isFloatTy() ||
          !rounded->getType()->getScalarType()->isHalfTy())
        continue;
      IRBuilder<> b(rounded);
      b.setFastMathFlags(product->getFastMathFlags());
      Constant *zero = ConstantFP::getZero(product->getType(), /*Negative=*/true);
      Value *same = b.CreateIntrinsic(Intrinsic::fma, {product->getType()},
                                      {product->getOperand(0), product->getOperand(1), zero});
      rounded->setOperand(0, same);
    }
}

} // namespace offload
