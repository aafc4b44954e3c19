//===- shared_operands.cpp - Values that come from one in many ways ---------===//

#include "codegen/shared_operands.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace offload {
namespace {

/// So many take microseconds, and what programs write seldom has more.
constexpr unsigned kMostWays = 256;

/// How many ways lead from each value of a loop that all lanes may have in common; others are not in here.
using Ways = DenseMap<const Value *, unsigned>;

/// What is in common where the operands are, see llvm::vputils::isSingleScalar().
bool isOfItsOperands(const Instruction &instruction, const llvm::Loop &loop) {
  if (isa<PHINode>(instruction))
    return instruction.getParent() != loop.getHeader();
  return isa<BinaryOperator, CastInst, CmpInst, GetElementPtrInst, LoadInst, SelectInst>(instruction);
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
    for (Instruction &instruction : make_early_inc_range(*block)) {
      unsigned all = waysFrom(instruction, *loop, ways);
      if (all == 0)
        continue;
      ways[&instruction] = all;
      // Those of addresses and comparisons are counted where they are used: they stay what they are.
      if (all <= kMostWays || isa<CmpInst>(instruction) || instruction.getType()->isPtrOrPtrVectorTy())
        continue;
      IRBuilder<> b(block, isa<PHINode>(instruction) ? block->getFirstInsertionPt()
                                                     : std::next(instruction.getIterator()));
      Value *frozen = b.CreateFreeze(&instruction);
      instruction.replaceUsesWithIf(frozen, [&](const Use &use) { return use.getUser() != frozen; });
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
