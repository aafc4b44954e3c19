//===- strip_checks.cpp - Code behind a check that a whole strip passes -----===//
//
// `if (i < n)` parts the threads of a strip, so that each would go through a loop behind it alone. In all
// strips but the last one of a row they stay together: the check holds for the first thread and for the last
// one, and so for those between. What is behind it gets a copy for these strips.
//
//===----------------------------------------------------------------------===//

#include "cpu/lane_distance.h"
#include "cpu/strips.h"
#include "cpu/uniform_flow.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {
namespace {

constexpr size_t kMostCopied = 1024; // instructions, behind one check

/// What rises from lane to lane without running over.
struct Risen {
  Value *value, *first;
  uint64_t distance;
  bool isSigned;
};

/// A copy for the strips that pass: the blocks from `begin` to `end`, where those that do not come as well.
struct Behind {
  BasicBlock *begin, *end;
  SmallVector<BasicBlock *> blocks;
  bool wanted; // what the check's condition is
};

class Checks {
public:
  Checks(Function &strip, CallInst *lane, uint32_t lanes)
      : strip(strip), lane(lane), lanes(lanes), flow(strip), alone(flow.partedBlocks()), apart(flow, lane) {}

  /// Copies what is behind one check and returns its branch; null where there is nothing more to copy.
  BranchInst *copyOne(const SmallPtrSetImpl<BranchInst *> &done) {
    DominatorTree tree(strip);
    LoopInfo info(tree);
    for (BasicBlock &block : strip) {
      auto *branch = dyn_cast<BranchInst>(block.getTerminator());
      if (!branch || !flow.partingBlocks().contains(&block) || alone.contains(&block) ||
          done.contains(branch) || !tree.isReachableFromEntry(&block))
        continue;
      for (bool wanted : {true, false})
        if (canTell(branch->getCondition(), wanted))
          if (std::optional<Behind> behind = find(*branch, wanted, info)) {
            copy(*branch, *behind);
            return branch;
          }
    }
    return nullptr;
  }

private:
  /// Whether the first and the last lane tell that the condition is `wanted` in all lanes.
  bool canTell(Value *condition, bool wanted) const {
    Value *a, *b;
    if (!flow.differs(condition))
      return true;
    if (match(condition, m_Not(m_Value(a))))
      return canTell(a, !wanted);
    if (wanted ? match(condition, m_LogicalAnd(m_Value(a), m_Value(b)))
               : match(condition, m_LogicalOr(m_Value(a), m_Value(b))))
      return canTell(a, wanted) && canTell(b, wanted);
    auto *test = dyn_cast<ICmpInst>(condition);
    return test && test->isRelational() && test->getOperand(0)->getType()->getIntegerBitWidth() >= 32 &&
           isRising(test->getOperand(0), test->getOperand(1));
  }

  /// Whether one of both rises from lane to lane and the other is the same in all.
  bool isRising(Value *a, Value *b) const {
    if (flow.differs(a) && flow.differs(b))
      return false;
    std::optional<uint64_t> distance = apart.of(flow.differs(a) ? a : b);
    return distance && *distance > 0 && *distance <= LaneDistance::kMost;
  }

  /// A value that says so.
  Value *tell(Value *condition, bool wanted, IRBuilder<> &b) {
    Value *first, *second;
    if (!flow.differs(condition))
      return wanted ? condition : b.CreateNot(condition);
    if (match(condition, m_Not(m_Value(first))))
      return tell(first, !wanted, b);
    if (match(condition, m_LogicalAnd(m_Value(first), m_Value(second))) ||
        match(condition, m_LogicalOr(m_Value(first), m_Value(second)))) {
      Value *holds = tell(first, wanted, b);
      return b.CreateLogicalAnd(holds, tell(second, wanted, b));
    }
    auto *test = cast<ICmpInst>(condition);
    auto predicate = wanted ? test->getPredicate() : test->getInversePredicate();
    Value *rising = test->getOperand(0), *bound = test->getOperand(1);
    if (flow.differs(bound)) {
      std::swap(rising, bound);
      predicate = ICmpInst::getSwappedPredicate(predicate);
    }
    // Between them no sum ran over, if the last lane's is not the smaller one.
    Value *least = apart.inLane(rising, 0, b);
    Value *most = apart.inLane(rising, lanes - 1, b);
    bool isSigned = ICmpInst::isSigned(predicate);
    Value *rises = b.CreateICmp(isSigned ? ICmpInst::ICMP_SLE : ICmpInst::ICMP_ULE, least, most);
    risen.push_back({rising, least, *apart.of(rising), isSigned});
    bool below = ICmpInst::isLT(predicate) || ICmpInst::isLE(predicate);
    return b.CreateLogicalAnd(rises, b.CreateICmp(predicate, below ? most : least, bound));
  }

  /// What a strip runs together once all of it went the branch's way; none where that is not worth a copy.
  std::optional<Behind> find(BranchInst &branch, bool wanted, LoopInfo &info) const {
    Behind behind{branch.getSuccessor(wanted ? 0 : 1), flow.join(branch.getParent()), {}, wanted};
    if (!behind.end || behind.begin == behind.end)
      return std::nullopt;
    SmallPtrSet<BasicBlock *, 16> seen = {behind.begin};
    behind.blocks = {behind.begin};
    size_t size = 0;
    for (size_t i = 0; i < behind.blocks.size(); ++i) {
      size += behind.blocks[i]->size();
      for (BasicBlock *next : successors(behind.blocks[i]))
        if (next != behind.end && seen.insert(next).second)
          behind.blocks.push_back(next);
    }
    if (size > kMostCopied || seen.contains(branch.getParent()) ||
        none_of(behind.blocks, [&](BasicBlock *each) {
          return info.isLoopHeader(each) && isCandidate(*info.getLoopFor(each));
        }))
      return std::nullopt;
    // What is used behind the end would have to be joined there.
    for (BasicBlock *block : behind.blocks)
      for (Instruction &instruction : *block)
        for (User *user : instruction.users()) {
          auto *use = cast<Instruction>(user);
          if (!seen.contains(use->getParent()) && !(isa<PHINode>(use) && use->getParent() == behind.end))
            return std::nullopt;
        }
    return behind;
  }

  void copy(BranchInst &branch, const Behind &behind) {
    BasicBlock *check = branch.getParent();
    ValueToValueMapTy map;
    SmallVector<BasicBlock *> copies;
    for (BasicBlock *block : behind.blocks) {
      copies.push_back(CloneBasicBlock(block, map, ".together", &strip));
      map[block] = copies.back();
    }
    remapInstructionsInBlocks(copies, map);
    for (PHINode &phi : behind.end->phis())
      for (unsigned i = 0, count = phi.getNumIncomingValues(); i < count; ++i)
        if (auto from = map.find(phi.getIncomingBlock(i)); from != map.end()) {
          auto value = map.find(phi.getIncomingValue(i));
          phi.addIncoming(value == map.end() ? phi.getIncomingValue(i) : static_cast<Value *>(value->second),
                          cast<BasicBlock>(static_cast<Value *>(from->second)));
        }
    // Of the ways into the copy there is the one from the check, besides those inside of it.
    for (PHINode &phi : copies.front()->phis())
      phi.removeIncomingValueIf([&](unsigned i) {
        BasicBlock *from = phi.getIncomingBlock(i);
        return from != check && !is_contained(copies, from);
      });
    SplitBlock(check, &branch);
    IRBuilder<> b(check->getTerminator());
    Value *passes = tell(branch.getCondition(), behind.wanted, b);
    BasicBlock *apartFrom = branch.getParent();
    check->getTerminator()->eraseFromParent();
    b.SetInsertPoint(check);
    b.CreateCondBr(passes, copies.front(), apartFrom);
    b.SetInsertPoint(copies.front(), copies.front()->getFirstInsertionPt());
    for (const Risen &each : risen)
      sayExact(each, copies, b);
  }

  /// In the copy, what is narrower than an address is written so that widening it keeps the distance.
  void sayExact(const Risen &risen, ArrayRef<BasicBlock *> copies, IRBuilder<> &b) {
    Type *type = risen.value->getType();
    if (type->getIntegerBitWidth() >= strip.getDataLayout().getIndexSizeInBits(0))
      return;
    Value *ahead = b.CreateMul(b.CreateZExtOrTrunc(lane, type), ConstantInt::get(type, risen.distance), "",
                               /*NUW=*/true, /*NSW=*/true);
    Value *exact = b.CreateAdd(risen.first, ahead, "", !risen.isSigned, risen.isSigned);
    risen.value->replaceUsesWithIf(exact, [&](Use &use) {
      auto *user = cast<Instruction>(use.getUser());
      return user != exact && is_contained(copies, user->getParent());
    });
  }

  Function &strip;
  CallInst *lane;
  const uint32_t lanes;
  UniformFlow flow;
  DenseSet<BasicBlock *> alone;
  LaneDistance apart;
  SmallVector<Risen> risen; // by the check that is copied
};

} // namespace

void copyBehindChecks(Function &strip, CallInst *lane, uint32_t lanes) {
  simplifyLoops(strip);
  SmallPtrSet<BranchInst *, 4> done;
  while (BranchInst *branch = Checks(strip, lane, lanes).copyOne(done))
    done.insert(branch);
}

} // namespace offload
