//===- whole_runs.cpp - Loops whose length is known but at the data's end ---===//
//
// A thread that takes some elements in a row goes from `start` to the smaller of `start + 8` and the data's
// size. Where it is not the size, it takes 8 steps: that is a loop of its own, which can be unrolled.
//
//===----------------------------------------------------------------------===//

#include "cpu/loop_analyses.h"
#include "cpu/strips.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {
namespace {

constexpr uint64_t kMostSteps = 32, kMostUnrolled = 512; // instructions

/// A loop over i from `start` while i is less than `bound`, which is `whole` or less.
struct Run {
  llvm::Loop *loop;
  ICmpInst *test;
  Value *start, *bound, *whole;
  uint64_t steps; // where the bound is `whole`
};

std::optional<Run> match(llvm::Loop &loop, ScalarEvolution &evolution) {
  BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch(), *front = loop.getLoopPreheader();
  if (!loop.isInnermost() || !latch || !front || loop.getExitingBlock() != header || !loop.getExitBlock() ||
      loop.getLoopID())
    return std::nullopt;
  auto *branch = dyn_cast<BranchInst>(header->getTerminator());
  auto *test = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
  if (!test || !loop.contains(branch->getSuccessor(0)) || !ICmpInst::isLT(test->getPredicate()))
    return std::nullopt;
  auto *variable = dyn_cast<PHINode>(test->getOperand(0));
  const APInt *step;
  if (!variable || variable->getParent() != header ||
      !PatternMatch::match(variable->getIncomingValueForBlock(latch),
                           m_c_Add(m_Specific(variable), m_APInt(step))) ||
      !step->isStrictlyPositive())
    return std::nullopt;
  Value *start = variable->getIncomingValueForBlock(front), *bound = test->getOperand(1), *ends[2];
  if (!loop.isLoopInvariant(bound) ||
      !PatternMatch::match(bound, m_CombineOr(m_c_UMin(m_Value(ends[0]), m_Value(ends[1])),
                                              m_c_SMin(m_Value(ends[0]), m_Value(ends[1])))))
    return std::nullopt;
  size_t size = 0;
  for (BasicBlock *block : loop.blocks()) {
    size += block->size();
    if (any_of(*block, [](Instruction &each) { return each.isAtomic() || isa<CallInst>(each); }))
      return std::nullopt;
  }
  for (Value *end : ends) {
    const auto *length =
        dyn_cast<SCEVConstant>(evolution.getMinusSCEV(evolution.getSCEV(end), evolution.getSCEV(start)));
    // Steps that end at `whole` do not run over on the way there if `whole` itself did not.
    if (!length || !length->getAPInt().isStrictlyPositive() || length->getAPInt().urem(*step) != 0)
      continue;
    uint64_t steps = length->getAPInt().udiv(*step).getLimitedValue();
    if (steps <= kMostSteps && steps * size <= kMostUnrolled)
      return Run{&loop, test, start, bound, end, steps};
  }
  return std::nullopt;
}

/// The loop's copy counts its steps, of which there are as many as `run` says where the way to it is open:
/// the bound is the whole one, and no sum ran over on the way there.
void addWholeRun(const Run &run, LoopInfo &info, DominatorTree &tree) {
  formLCSSA(*run.loop, tree, &info, nullptr);
  BasicBlock *header = run.loop->getHeader(), *latch = run.loop->getLoopLatch();
  BasicBlock *exit = run.loop->getExitBlock(), *front = run.loop->getLoopPreheader();
  BasicBlock *clipped = SplitEdge(front, header, &tree, &info);
  ValueToValueMapTy map;
  SmallVector<BasicBlock *> blocks;
  cloneLoopWithPreheader(clipped, front, run.loop, map, ".whole", &info, &tree, blocks);
  remapInstructionsInBlocks(blocks, map);
  auto *wholeFront = cast<BasicBlock>(map[clipped]), *wholeHeader = cast<BasicBlock>(map[header]);
  auto *wholeLatch = cast<BasicBlock>(map[latch]);
  for (PHINode &phi : exit->phis()) {
    Value *last = phi.getIncomingValueForBlock(header);
    auto copy = map.find(last);
    phi.addIncoming(copy == map.end() ? last : static_cast<Value *>(copy->second), wholeHeader);
  }
  tree.changeImmediateDominator(exit, front);

  Instruction *enter = front->getTerminator();
  IRBuilder<> b(enter);
  Value *isWhole = b.CreateAnd(b.CreateICmpEQ(run.bound, run.whole),
                               b.CreateICmp(run.test->getPredicate(), run.start, run.whole));
  b.CreateCondBr(isWhole, wholeFront, clipped, MDBuilder(b.getContext()).createLikelyBranchWeights());
  enter->eraseFromParent();
  // The other one runs at the data's end, for a few steps.
  addStringMetadataToLoop(run.loop, "llvm.loop.vectorize.enable", 0);
  addStringMetadataToLoop(run.loop, "llvm.loop.unroll.disable", 1);

  b.SetInsertPoint(wholeHeader, wholeHeader->begin());
  PHINode *step = b.CreatePHI(b.getInt32Ty(), 2, "step");
  step->addIncoming(b.getInt32(0), wholeFront);
  b.SetInsertPoint(wholeLatch->getTerminator());
  step->addIncoming(b.CreateAdd(step, b.getInt32(1), "", /*NUW=*/true, /*NSW=*/true), wholeLatch);
  auto *branch = cast<BranchInst>(wholeHeader->getTerminator());
  b.SetInsertPoint(branch);
  branch->setCondition(b.CreateICmpULT(step, b.getInt32(uint32_t(run.steps))));
  unrollFully(*wholeLatch->getTerminator());
}

} // namespace

void addWholeRuns(Function &code) {
  simplifyLoops(code);
  LoopAnalyses analyses;
  auto &info = analyses.functions.getResult<LoopAnalysis>(code);
  auto &tree = analyses.functions.getResult<DominatorTreeAnalysis>(code);
  auto &evolution = analyses.functions.getResult<ScalarEvolutionAnalysis>(code);
  SmallVector<Run> runs;
  for (llvm::Loop *loop : info.getLoopsInPreorder())
    if (std::optional<Run> run = match(*loop, evolution))
      runs.push_back(*run);
  for (const Run &run : runs)
    addWholeRun(run, info, tree);
}

} // namespace offload
