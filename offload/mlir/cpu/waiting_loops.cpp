//===- waiting_loops.cpp - Short loops that wait in each step ---------------===//
//
// A block adds up its values in a tree: half of the threads add, all wait, half of those add, and so on. With
// the steps taken apart, each is a loop over a number of threads that is known, as wide as the vectors it
// fills, and what one step leaves for the next stays in registers.
//
//===----------------------------------------------------------------------===//

#include "cpu/loop_analyses.h"
#include "cpu/strips.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;

namespace offload {
namespace {

constexpr unsigned kMostSteps = 12;     // a tree over the 1,024 threads of the largest block has 10
constexpr unsigned kMostUnrolled = 512; // instructions

/// As many steps as the loop has; 0 for one that is left as it is.
unsigned stepsOf(llvm::Loop &loop, ScalarEvolution &evolution) {
  if (!waits(loop))
    return 0;
  size_t size = 0;
  for (BasicBlock *block : loop.blocks())
    size += block->size();
  unsigned steps = evolution.getSmallConstantTripCount(&loop); // the last of them only finds that it ends
  return steps <= kMostSteps + 1 && steps * size <= kMostUnrolled ? steps : 0;
}

} // namespace

bool takeApart(Function &code, function_ref<unsigned(llvm::Loop &, ScalarEvolution &)> stepsOf) {
  simplifyLoops(code);
  LoopAnalyses analyses;
  auto &of = analyses.functions;
  auto &info = of.getResult<LoopAnalysis>(code);
  auto &tree = of.getResult<DominatorTreeAnalysis>(code);
  auto &evolution = of.getResult<ScalarEvolutionAnalysis>(code);
  SmallVector<std::pair<llvm::Loop *, unsigned>> found;
  for (llvm::Loop *loop : info.getLoopsInPreorder())
    if (unsigned steps = loop->isInnermost() && loop->getLoopLatch() ? stepsOf(*loop, evolution) : 0)
      found.push_back({loop, steps});
  bool areGone = false;
  for (auto [loop, steps] : found) {
    // What is used behind the loop is found by the phis there.
    formLCSSA(*loop, tree, &info, &evolution);
    UnrollLoopOptions options{};
    options.Count = steps;
    options.Force = true;
    areGone |= LoopUnrollResult::FullyUnrolled ==
               UnrollLoop(loop, options, &info, &evolution, &tree, &of.getResult<AssumptionAnalysis>(code),
                          &of.getResult<TargetIRAnalysis>(code),
                          &of.getResult<OptimizationRemarkEmitterAnalysis>(code),
                          /*PreserveLCSSA=*/true);
  }
  // Behind the last step stands the test that finds its end, with a way that nobody goes: one that leads
  // nowhere, so that threads would have no end in common.
  for (BasicBlock &block : code)
    ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
  EliminateUnreachableBlocks(code);
  return areGone;
}

void unrollWaitingLoops(Function &code) { takeApart(code, stepsOf); }

} // namespace offload
