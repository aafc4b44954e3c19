//===- serial_sums.cpp - Loops that wait for their own sum ------------------===//

#include "codegen/cpu/serial_sums.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace offload {
namespace {

/// Whether an operation takes a number that is being added up; the order of such operations counts.
bool addsTo(const Value *value, const Value *sum) {
  auto *operation = dyn_cast<Instruction>(value);
  if (!operation || !isa<FPMathOperator>(operation) || operation->hasAllowReassoc())
    return false;
  if (auto *call = dyn_cast<IntrinsicInst>(operation))
    return (call->getIntrinsicID() == Intrinsic::fma || call->getIntrinsicID() == Intrinsic::fmuladd) &&
           call->getArgOperand(2) == sum;
  return operation->getOpcode() == Instruction::FAdd && is_contained(operation->operands(), sum);
}

/// Whether each step adds to a number, and to no more than one.
bool waitsForItsSum(const llvm::Loop &loop) {
  BasicBlock *latch = loop.getLoopLatch();
  unsigned sums = 0;
  for (const PHINode &phi : loop.getHeader()->phis()) {
    if (!phi.getType()->isFloatingPointTy())
      continue;
    if (!addsTo(phi.getIncomingValueForBlock(latch), &phi))
      return false;
    ++sums;
  }
  return sums == 1;
}

} // namespace

PreservedAnalyses SerialSumsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (loop->isInnermost() && loop->getLoopLatch() && evolution.getSmallConstantTripCount(loop) == 0 &&
        waitsForItsSum(*loop))
      addStringMetadataToLoop(loop, "llvm.loop.unroll.runtime.disable");
  return PreservedAnalyses::all();
}

} // namespace offload
