//===- odd_loads.cpp - Masked loads of an odd number of elements ----------===//

#include "codegen/cpu/odd_loads.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

#include <numeric>

using namespace llvm;

namespace offload {

/// The first elements of a vector, then those of another of its type.
static Value *resized(IRBuilder<> &b, Value *vector, Value *rest, unsigned count) {
  SmallVector<int> elements(count);
  std::iota(elements.begin(), elements.end(), 0);
  return b.CreateShuffleVector(vector, rest, elements);
}

void widenOddLoads(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *load = dyn_cast<IntrinsicInst>(&instruction);
      if (!load || load->getIntrinsicID() != Intrinsic::masked_load)
        continue;
      auto *type = dyn_cast<FixedVectorType>(load->getType());
      if (!type || isPowerOf2_32(type->getNumElements()))
        continue;
      unsigned count = type->getNumElements(), wide = static_cast<unsigned>(PowerOf2Ceil(count));
      IRBuilder<> b(load);
      Value *mask = load->getArgOperand(1), *instead = load->getArgOperand(2);
      if (PatternMatch::match(mask, PatternMatch::m_Zero())) {
        load->replaceAllUsesWith(instead);
        load->eraseFromParent();
        continue;
      }
      Value *wide_mask = resized(b, mask, Constant::getNullValue(mask->getType()), wide);
      Value *wide_instead = resized(b, instead, PoisonValue::get(type), wide);
      Align align = load->getParamAlign(0).valueOrOne();
      CallInst *whole = b.CreateMaskedLoad(FixedVectorType::get(type->getElementType(), wide),
                                           load->getArgOperand(0), align, wide_mask, wide_instead);
      whole->copyMetadata(*load);
      load->replaceAllUsesWith(resized(b, whole, PoisonValue::get(whole->getType()), count));
      load->eraseFromParent();
    }
}

} // namespace offload
