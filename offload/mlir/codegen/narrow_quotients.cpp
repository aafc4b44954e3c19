//===- narrow_quotients.cpp - Division of integers of less than 32 bits ----===//

#include "codegen/narrow_quotients.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {

void widenQuotients(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      if (!instruction.isIntDivRem() || instruction.getType()->getScalarSizeInBits() >= 32)
        continue;
      auto &narrow = cast<BinaryOperator>(instruction);
      bool isSigned = narrow.getOpcode() == Instruction::SDiv || narrow.getOpcode() == Instruction::SRem;
      IRBuilder<> b(&narrow);
      Type *wide = narrow.getType()->getWithNewBitWidth(32);
      Value *left = b.CreateIntCast(narrow.getOperand(0), wide, isSigned);
      Value *right = b.CreateIntCast(narrow.getOperand(1), wide, isSigned);
      narrow.replaceAllUsesWith(
          b.CreateTrunc(b.CreateBinOp(narrow.getOpcode(), left, right), narrow.getType()));
      narrow.eraseFromParent();
    }
}

} // namespace offload
