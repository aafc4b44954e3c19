//===- double_extremes.cpp - Minima and maxima of f64 on AMD GPUs ----------===//

#include "codegen/gpu/double_extremes.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {

static Value *extreme(IRBuilder<> &b, bool most, Value *left, Value *right, FastMathFlags given,
                      const SimplifyQuery &query) {
  // The instruction is the same without this flag, but NaNs are made quiet in front of it.
  FastMathFlags flags = given;
  flags.setNoNaNs();
  Value *chosen = b.CreateBinaryIntrinsic(most ? Intrinsic::maxnum : Intrinsic::minnum, left, right, flags);
  if (given.noNaNs() || (isKnownNeverNaN(left, query) && isKnownNeverNaN(right, query)))
    return chosen;
  return b.CreateSelect(b.CreateFCmpUNO(left, right), ConstantFP::getNaN(left->getType()), chosen);
}

/// The extreme of a vector's elements, of one half and the other as long as there are two.
static Value *extremeOfElements(IRBuilder<> &b, bool most, Value *vector, FastMathFlags flags,
                                const SimplifyQuery &query) {
  SmallVector<Value *> left;
  for (unsigned i = 0; i < cast<FixedVectorType>(vector->getType())->getNumElements(); ++i)
    left.push_back(b.CreateExtractElement(vector, i));
  while (left.size() > 1) {
    size_t half = divideCeil(left.size(), 2);
    for (size_t i = half; i < left.size(); ++i)
      left[i - half] = extreme(b, most, left[i - half], left[i], flags, query);
    left.truncate(half);
  }
  return left.front();
}

/// The same as an operation that LLVM would write with freezes, or null if this is none.
static Value *written(IntrinsicInst &made, const SimplifyQuery &query) {
  if (!made.getType()->getScalarType()->isDoubleTy())
    return nullptr;
  IRBuilder<> b(&made);
  Intrinsic::ID id = made.getIntrinsicID();
  if (id == Intrinsic::maximum || id == Intrinsic::minimum)
    return extreme(b, id == Intrinsic::maximum, made.getArgOperand(0), made.getArgOperand(1),
                   made.getFastMathFlags(), query);
  if (id == Intrinsic::vector_reduce_fmaximum || id == Intrinsic::vector_reduce_fminimum)
    return extremeOfElements(b, id == Intrinsic::vector_reduce_fmaximum, made.getArgOperand(0),
                             made.getFastMathFlags(), query);
  return nullptr;
}

void writeDoubleExtremes(Module &module) {
  const SimplifyQuery query(module.getDataLayout());
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *made = dyn_cast<IntrinsicInst>(&instruction))
        if (Value *same = written(*made, query)) {
          same->takeName(made);
          made->replaceAllUsesWith(same);
          made->eraseFromParent();
        }
}

} // namespace offload
