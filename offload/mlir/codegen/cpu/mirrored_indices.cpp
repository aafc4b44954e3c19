//===- mirrored_indices.cpp - Indices that count down -----------------------===//

#include "codegen/cpu/mirrored_indices.h"

#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {

PreservedAnalyses MirroredIndicesPass::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  bool changed = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *index;
    const APInt *last;
    if (!instruction.getType()->isIntegerTy() || // a splat matches as well
        !match(&instruction, m_Xor(m_Value(index), m_APInt(last))) || !last->isMask() ||
        !evolution.getUnsignedRangeMax(evolution.getSCEV(index)).ule(*last))
      continue;
    auto *difference =
        BinaryOperator::CreateNUWSub(instruction.getOperand(1), index, "", instruction.getIterator());
    instruction.replaceAllUsesWith(difference);
    evolution.forgetValue(&instruction);
    instruction.eraseFromParent();
    changed = true;
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace offload
