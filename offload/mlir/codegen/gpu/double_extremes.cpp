//===- double_extremes.cpp - Minima and maxima of f64 on AMD GPUs ----------===//

#include "codegen/gpu/double_extremes.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {

static void write(IntrinsicInst &extreme, const SimplifyQuery &query) {
  Value *left = extreme.getArgOperand(0), *right = extreme.getArgOperand(1);
  IRBuilder<> b(&extreme);
  // The instruction is the same without this flag, but NaNs are made quiet in front of it.
  FastMathFlags flags = extreme.getFastMathFlags();
  flags.setNoNaNs();
  bool most = extreme.getIntrinsicID() == Intrinsic::maximum;
  Value *chosen = b.CreateBinaryIntrinsic(most ? Intrinsic::maxnum : Intrinsic::minnum, left, right, flags);
  if (!extreme.hasNoNaNs() && !(isKnownNeverNaN(left, query) && isKnownNeverNaN(right, query)))
    chosen = b.CreateSelect(b.CreateFCmpUNO(left, right), ConstantFP::getNaN(extreme.getType()), chosen);
  chosen->takeName(&extreme);
  extreme.replaceAllUsesWith(chosen);
  extreme.eraseFromParent();
}

void writeDoubleExtremes(Module &module) {
  const SimplifyQuery query(module.getDataLayout());
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *made = dyn_cast<IntrinsicInst>(&instruction);
      if (made && made->getType()->getScalarType()->isDoubleTy() &&
          (made->getIntrinsicID() == Intrinsic::maximum || made->getIntrinsicID() == Intrinsic::minimum))
        write(*made, query);
    }
}

} // namespace offload
