//===- odd_products.cpp - Products of an odd number of integers -----------===//

#include "codegen/cpu/odd_products.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {

void writeOddProducts(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *reduction = dyn_cast<IntrinsicInst>(&instruction);
      if (!reduction || reduction->getIntrinsicID() != Intrinsic::vector_reduce_mul)
        continue;
      Value *vector = reduction->getArgOperand(0);
      auto *type = dyn_cast<FixedVectorType>(vector->getType());
      if (!type || type->getNumElements() % 2 == 0)
        continue;
      IRBuilder<> b(reduction);
      Value *product = b.CreateExtractElement(vector, uint64_t(0));
      for (unsigned i = 1; i < type->getNumElements(); ++i)
        product = b.CreateMul(product, b.CreateExtractElement(vector, i));
      reduction->replaceAllUsesWith(product);
      reduction->eraseFromParent();
    }
}

} // namespace offload
