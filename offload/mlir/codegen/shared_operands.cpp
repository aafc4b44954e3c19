//===- shared_operands.cpp - Values that come from one in many ways ---------===//

#include "codegen/shared_operands.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace offload {
namespace {

/// So many take microseconds, and what programs write seldom has more.
constexpr unsigned kMostWays = 256;

/// How many ways lead from each value of a loop that all lanes may have in common; others are not in here.
using Ways = DenseMap<const Value *, unsigned>;

/// What is in common where the operands are, or is put in front of the loop where they are: see
/// llvm::vputils::isSingleScalar() and isUniformAcrossVFsAndUFs().
bool isOfItsOperands(const Instruction &instruction, const llvm::Loop &loop) {
  if (isa<PHINode>(instruction))
    return instruction.getParent() != loop.getHeader();
  return isa<LoadInst>(instruction) || !(instruction.isTerminator() || instruction.mayReadOrWriteMemory());
}

/// The operands, and for what branches join in, the conditions too: it becomes a selection.
SmallVector<const Value *> ingredients(const Instruction &instruction) {
  SmallVector<const Value *> all(instruction.operand_values());
  if (auto *phi = dyn_cast<PHINode>(&instruction))
    for (const BasicBlock *from : phi->blocks()) {
      SmallVector<const BasicBlock *, 4> branches(predecessors(from));
      branches.push_back(from);
      for (const BasicBlock *each : branches)
        if (auto *branch = dyn_cast<BranchInst>(each->getTerminator()); branch && branch->isConditional())
          all.push_back(branch->getCondition());
    }
  return all;
}

/// Zero where lanes have values of their own.
unsigned waysFrom(const Instruction &instruction, const llvm::Loop &loop, const Ways &ways) {
  if (!isOfItsOperands(instruction, loop))
    return 0;
  unsigned all = 1;
  for (const Value *each : ingredients(instruction)) {
    auto *made = dyn_cast<Instruction>(each);
    if (!made || !loop.contains(made))
      continue;
    unsigned those = ways.lookup(made);
    if (those == 0 && !(isa<PHINode>(instruction) && made->getType()->isIntegerTy(1)))
      return 0;
    all += those;
  }
  return isa<LoadInst>(instruction) ? 1 : all;
}

/// What each iteration has of its own: a number that counts them.
PHINode *counterOf(const llvm::Loop &loop) {
  BasicBlock *latch = loop.getLoopLatch();
  for (PHINode &phi : loop.getHeader()->phis()) {
    Value *step;
    if (latch && phi.getType()->isIntegerTy() && phi.getNumIncomingValues() == 2 &&
        PatternMatch::match(
            phi.getIncomingValueForBlock(latch),
            PatternMatch::m_c_Add(PatternMatch::m_Specific(&phi), PatternMatch::m_Value(step))) &&
        loop.isLoopInvariant(step))
      return &phi;
  }
  return nullptr;
}

/// The value, chosen by a condition that LLVM's vectorizer does not know to hold in all iterations: it is
/// there until the passes right after the vectorizer. A freeze is no end: where the vectorizer puts what was
/// loaded in front of the loop, all that is made of it goes there too.
Value *behindCondition(Instruction &value, PHINode &counter) {
  BasicBlock *block = value.getParent();
  IRBuilder<> b(block, isa<PHINode>(value) ? block->getFirstInsertionPt() : std::next(value.getIterator()));
  Value *always = b.Insert(new ICmpInst(CmpInst::ICMP_EQ, &counter, &counter));
  return b.Insert(SelectInst::Create(always, &value, PoisonValue::get(value.getType())));
}

} // namespace

PreservedAnalyses SharedOperandsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  if (loops.empty())
    return PreservedAnalyses::all();
  Ways ways;
  bool changed = false;
  for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function)) {
    llvm::Loop *loop = loops.getLoopFor(block);
    if (!loop || !loop->isInnermost())
      continue;
    PHINode *counter = nullptr;
    for (Instruction &instruction : make_early_inc_range(*block)) {
      unsigned all = waysFrom(instruction, *loop, ways);
      if (all == 0)
        continue;
      ways[&instruction] = all;
      // Those of addresses and comparisons are counted where they are used: they stay what they are.
      Type *type = instruction.getType();
      if (all <= kMostWays || isa<CmpInst>(instruction) || type->isPtrOrPtrVectorTy() ||
          !type->isSingleValueType())
        continue;
      if (!counter)
        counter = counterOf(*loop);
      if (!counter)
        break;
      Value *chosen = behindCondition(instruction, *counter);
      instruction.replaceUsesWithIf(chosen, [&](const Use &use) { return use.getUser() != chosen; });
      changed = true;
    }
  }
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

} // namespace offload
