//===- clamp_loops.cpp - Loops without the iterations that do nothing -----===//

#include "codegen/cpu/clamp_loops.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {
namespace {

constexpr uint64_t kMostIterations = uint64_t(1) << 32;

/// One loop. Iterations are numbered from 0; what bounds them is computed in 64 bits in front of the loop.
class Clamp {
public:
  Clamp(Loop &loop, ScalarEvolution &evolution)
      : loop(loop), evolution(evolution), expander(evolution, "clamp") {}

  bool run() {
    if (!describe())
      return false;
    collectGuards();
    if (guards.empty())
      return false;
    Instruction *end = loop.getLoopPreheader()->getTerminator();
    if (!expander.isSafeToExpandAt(lastIteration, end))
      return false;
    IRBuilder<> b(end);
    Type *i64 = b.getInt64Ty();
    Value *count =
        b.CreateAdd(b.CreateZExt(expander.expandCodeFor(lastIteration, lastIteration->getType(), end), i64),
                    b.getInt64(1));
    Value *first = b.getInt64(0), *last = count;
    bool changed = false;
    for (auto &[compare, holds] : guards)
      changed |= narrow(b, *compare, holds, count, first, last);
    if (changed)
      rewrite(b, first, last);
    return changed;
  }

private:
  struct Guard {
    ICmpInst *compare;
    bool holds; // what the comparison says in iterations that do something
  };

  /// Is this a loop whose iterations may be left out, counted by one variable?
  bool describe() {
    latch = loop.getLoopLatch();
    exit = loop.getExitBlock();
    if (!loop.isLoopSimplifyForm() || !exit || loop.getExitingBlock() != latch || !exit->phis().empty() ||
        range_size(loop.getHeader()->phis()) != 1)
      return false;
    variable = &*loop.getHeader()->phis().begin();
    branch = dyn_cast<BranchInst>(latch->getTerminator());
    next = dyn_cast<BinaryOperator>(variable->getIncomingValueForBlock(latch));
    if (!branch || !variable->getType()->isIntegerTy() || !next ||
        !match(next, m_c_Add(m_Specific(variable), m_One())) ||
        variable->getType()->getIntegerBitWidth() > 64)
      return false;
    lastIteration = evolution.getBackedgeTakenCount(&loop);
    const auto *most = dyn_cast<SCEVConstant>(evolution.getConstantMaxBackedgeTakenCount(&loop));
    if (isa<SCEVCouldNotCompute>(lastIteration) || !most || most->getAPInt().uge(kMostIterations))
      return false;
    mostIteration = most->getAPInt().getZExtValue();
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block)
        for (User *user : instruction.users())
          if (!loop.contains(cast<Instruction>(user)))
            return false;
    return true;
  }

  static bool doesNothing(const BasicBlock &block) {
    return none_of(block, [](const Instruction &instruction) {
      return instruction.mayHaveSideEffects() || instruction.isVolatile();
    });
  }

  /// Follows the loop's body as long as it only decides whether anything is done at all.
  void collectGuards() {
    if (!doesNothing(*latch))
      return;
    SmallPtrSet<BasicBlock *, 8> seen;
    for (BasicBlock *block = loop.getHeader();
         block != latch && doesNothing(*block) && seen.insert(block).second;) {
      auto *decides = dyn_cast<BranchInst>(block->getTerminator());
      if (!decides)
        return;
      if (decides->isUnconditional()) {
        block = decides->getSuccessor(0);
        continue;
      }
      bool goesOn = decides->getSuccessor(1) == latch;
      if (!goesOn && decides->getSuccessor(0) != latch)
        return;
      collect(decides->getCondition(), goesOn);
      block = decides->getSuccessor(goesOn ? 0 : 1);
    }
  }

  /// The comparisons which all must come out as they do where `condition` is `holds`.
  void collect(Value *condition, bool holds) {
    Value *left, *right;
    if (holds ? match(condition, m_LogicalAnd(m_Value(left), m_Value(right)))
              : match(condition, m_LogicalOr(m_Value(left), m_Value(right)))) {
      collect(left, holds);
      collect(right, holds);
    } else if (match(condition, m_Not(m_Value(left)))) {
      collect(left, !holds);
    } else if (auto *compare = dyn_cast<ICmpInst>(condition)) {
      guards.push_back({compare, holds});
    }
  }

  /// Does start + iteration stay in the range of the type?
  bool staysInRange(const SCEVAddRecExpr &value, Value *start, bool isSigned) {
    if (isSigned ? value.hasNoSignedWrap() : value.hasNoUnsignedWrap())
      return true;
    KnownBits bits = computeKnownBits(start, loop.getHeader()->getDataLayout());
    APInt most = isSigned ? bits.getSignedMaxValue() : bits.getMaxValue();
    bool overflow = most.getBitWidth() < 33;
    if (overflow)
      return false;
    APInt iterations(most.getBitWidth(), mostIteration);
    (void)(isSigned ? most.sadd_ov(iterations, overflow) : most.uadd_ov(iterations, overflow));
    return !overflow;
  }

  static Value *frozen(IRBuilder<> &b, Value *value) {
    return isGuaranteedNotToBeUndefOrPoison(value) ? value : b.CreateFreeze(value);
  }

  /// Narrows [first, last) to the iterations in which the comparison comes out as it must. False where that
  /// is not known to be one range.
  bool narrow(IRBuilder<> &b, ICmpInst &compare, bool holds, Value *count, Value *&first, Value *&last) {
    CmpInst::Predicate predicate = holds ? compare.getPredicate() : compare.getInversePredicate();
    Value *left = compare.getOperand(0), *right = compare.getOperand(1);
    if (!left->getType()->isIntegerTy() || left->getType()->getIntegerBitWidth() > 64)
      return false;
    if (loop.isLoopInvariant(left)) {
      std::swap(left, right);
      predicate = CmpInst::getSwappedPredicate(predicate);
    }
    if (predicate == CmpInst::ICMP_NE && match(right, m_Zero()))
      predicate = CmpInst::ICMP_UGT; // LLVM's form of `1 <= i`
    if (!loop.isLoopInvariant(right) || predicate == CmpInst::ICMP_NE)
      return false;
    const auto *value = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(left));
    Instruction *end = loop.getLoopPreheader()->getTerminator();
    if (!value || value->getLoop() != &loop || !value->getStepRecurrence(evolution)->isOne() ||
        !expander.isSafeToExpandAt(value->getStart(), end))
      return false;
    Value *start = expander.expandCodeFor(value->getStart(), left->getType(), end);
    bool isSigned = CmpInst::isSigned(predicate);
    if (predicate == CmpInst::ICMP_EQ)
      isSigned = !staysInRange(*value, start, false);
    if (!staysInRange(*value, start, isSigned))
      return false;
    // A comparison that another one guards may be one of poison, which here would be in the range of all.
    right = frozen(b, right);
    start = frozen(b, start);

    // Distances are taken where they are not negative, so that they fit the type without a sign.
    CmpInst::Predicate less = isSigned ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT;
    Value *below = b.CreateICmp(less, right, start); // the whole loop is beyond the bound
    Value *distance = b.CreateZExt(b.CreateSub(right, start), b.getInt64Ty());
    distance = b.CreateBinaryIntrinsic(Intrinsic::umin, distance, count);
    Value *behind = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateAdd(distance, b.getInt64(1)), count);
    Value *none = b.getInt64(0);
    auto atLeast = [&](Value *bound) { first = b.CreateBinaryIntrinsic(Intrinsic::umax, first, bound); };
    auto lessThan = [&](Value *bound) { last = b.CreateBinaryIntrinsic(Intrinsic::umin, last, bound); };
    switch (predicate) {
    case CmpInst::ICMP_SLT:
    case CmpInst::ICMP_ULT:
      lessThan(b.CreateSelect(below, none, distance));
      break;
    case CmpInst::ICMP_SLE:
    case CmpInst::ICMP_ULE:
      lessThan(b.CreateSelect(below, none, behind));
      break;
    case CmpInst::ICMP_SGT:
    case CmpInst::ICMP_UGT:
      atLeast(b.CreateSelect(below, none, behind));
      break;
    case CmpInst::ICMP_SGE:
    case CmpInst::ICMP_UGE:
      atLeast(b.CreateSelect(below, none, distance));
      break;
    default: // equal
      atLeast(b.CreateSelect(below, count, distance));
      lessThan(b.CreateSelect(below, none, behind));
    }
    compare.replaceUsesWithIf(b.getInt1(holds),
                              [&](Use &use) { return loop.contains(cast<Instruction>(use.getUser())); });
    return true;
  }

  void rewrite(IRBuilder<> &b, Value *first, Value *last) {
    BasicBlock *before = loop.getLoopPreheader(), *header = loop.getHeader();
    Value *start = variable->getIncomingValueForBlock(before);
    // Frozen, the ends are plain values to other passes: they would compute them again in the loop, where a
    // division by the size of the grid cannot leave it.
    auto at = [&](Value *iteration) {
      return frozen(b, b.CreateAdd(start, b.CreateTrunc(iteration, start->getType())));
    };
    Value *begin = at(first), *end = at(last);
    Instruction *old = before->getTerminator();
    b.CreateCondBr(b.CreateICmpULT(first, last), header, exit);
    old->eraseFromParent();
    variable->setIncomingValueForBlock(before, begin);
    IRBuilder<> latchEnd(branch);
    bool leavesOnTrue = branch->getSuccessor(0) == exit;
    branch->setCondition(leavesOnTrue ? latchEnd.CreateICmpEQ(next, end) : latchEnd.CreateICmpNE(next, end));
  }

  Loop &loop;
  ScalarEvolution &evolution;
  SCEVExpander expander;
  BasicBlock *latch = nullptr, *exit = nullptr;
  PHINode *variable = nullptr;
  BinaryOperator *next = nullptr;
  BranchInst *branch = nullptr;
  const SCEV *lastIteration = nullptr;
  uint64_t mostIteration = 0;
  SmallVector<Guard> guards;
};

} // namespace

PreservedAnalyses ClampLoopsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  bool changed = false;
  for (Loop *loop : loops.getLoopsInPreorder())
    if (loop->isInnermost() && Clamp(*loop, evolution).run()) {
      changed = true;
      evolution.forgetLoop(loop->getOutermostLoop());
    }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace offload
