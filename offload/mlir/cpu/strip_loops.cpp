//===- strip_loops.cpp - Which loops the threads of a strip run together ----===//

#include "cpu/block_lanes.h"
#include "cpu/lane_distance.h"
#include "cpu/strips.h"
#include "cpu/uniform_flow.h"
#include "names.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace offload {
namespace {

FunctionCallee barrier(Module &module) {
  return module.getOrInsertFunction(kBarrier, Type::getVoidTy(module.getContext()));
}

/// A value of a loop in the loop's copy.
Value *inJoint(ValueToValueMapTy &map, Value *value) {
  auto found = map.find(value);
  return found == map.end() ? value : static_cast<Value *>(found->second);
}

/// A loop over i from start, in steps, while i is less than bound.
struct Counted {
  PHINode *variable;
  Value *start, *step, *bound;
  ICmpInst *test;
  uint64_t apart; // from one lane's start to the next one's
};

class Splitter {
public:
  Splitter(Function &strip, CallInst *lane, uint32_t lanes)
      : strip(strip), lane(lane), lanes(lanes), flow(strip), alone(flow.partedBlocks()), apart(flow, lane) {}

  void run() {
    DominatorTree tree(strip);
    LoopInfo info(tree);
    SmallVector<std::pair<llvm::Loop *, Counted>> found;
    for (llvm::Loop *loop : info.getLoopsInPreorder())
      if (isCandidate(*loop))
        if (std::optional<Counted> counted = match(*loop))
          found.push_back({loop, *counted});
    for (auto &[loop, counted] : found)
      split(*loop, counted, info, tree);
  }

private:
  bool isFixed(Value *value, const llvm::Loop &loop) const {
    return !flow.differs(value) && loop.isLoopInvariant(value);
  }

  std::optional<Counted> match(llvm::Loop &loop) {
    BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch(), *front = loop.getLoopPreheader();
    if (!latch || !front || loop.getExitingBlock() != header || !loop.getExitBlock())
      return std::nullopt;
    auto *branch = dyn_cast<BranchInst>(header->getTerminator());
    auto *test = branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
    if (!test || !loop.contains(branch->getSuccessor(0)) || loop.contains(branch->getSuccessor(1)))
      return std::nullopt;
    auto *variable = dyn_cast<PHINode>(test->getOperand(0));
    auto predicate = test->getPredicate();
    if (!variable || variable->getParent() != header ||
        (predicate != ICmpInst::ICMP_SLT && predicate != ICmpInst::ICMP_ULT) ||
        !isFixed(test->getOperand(1), loop))
      return std::nullopt;
    auto *next = dyn_cast<BinaryOperator>(variable->getIncomingValueForBlock(latch));
    if (!next || next->getOpcode() != Instruction::Add)
      return std::nullopt;
    Value *step = next->getOperand(0) == variable ? next->getOperand(1) : next->getOperand(0);
    if ((next->getOperand(0) != variable && next->getOperand(1) != variable) || !isFixed(step, loop))
      return std::nullopt;
    if (alone.contains(front))
      return std::nullopt;
    Value *start = variable->getIncomingValueForBlock(front);
    std::optional<uint64_t> distance = apart.of(start);
    if (!distance || *distance == 0 || *distance > LaneDistance::kMost)
      return std::nullopt;
    apart.set(variable, *distance);
    if (!apart.suits(loop))
      return std::nullopt;
    return Counted{variable, start, step, test->getOperand(1), test, *distance};
  }

  /// In front of the loop comes another one whose variable is lane 0's and which ends as soon as the last
  /// lane's would: all lanes take its steps. The loop itself then does what is left.
  ///
  /// With d from the first lane to the last one and a bound n, i0 < n - d says that i0 + d, and every lane's
  /// i between, is less than n and no sum ran over; where n - d would, the smallest number stands for it, and
  /// no step is taken together.
  void split(llvm::Loop &loop, const Counted &counted, LoopInfo &info, DominatorTree &tree) {
    formLCSSA(loop, tree, &info, nullptr);
    BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch(), *exit = loop.getExitBlock();
    BasicBlock *front = loop.getLoopPreheader(), *alone = SplitEdge(front, header, &tree, &info);
    ValueToValueMapTy map;
    SmallVector<BasicBlock *> blocks;
    cloneLoopWithPreheader(alone, front, &loop, map, ".joint", &info, &tree, blocks);
    remapInstructionsInBlocks(blocks, map);
    auto *jointFront = cast<BasicBlock>(map[alone]), *jointHeader = cast<BasicBlock>(map[header]);
    auto *jointLatch = cast<BasicBlock>(map[latch]);
    auto *rest = BasicBlock::Create(strip.getContext(), "rest", &strip, alone);
    front->getTerminator()->setSuccessor(0, jointFront);
    auto *branch = cast<BranchInst>(jointHeader->getTerminator());
    branch->setSuccessor(1, rest);

    // The joint loop counts for lane 0.
    auto *type = cast<IntegerType>(counted.variable->getType());
    bool isSigned = counted.test->isSigned();
    IRBuilder<> b(jointFront->getTerminator());
    Value *first = apart.inLane(counted.start, 0, b);
    Value *distance = ConstantInt::get(type, counted.apart * (lanes - 1));
    Value *bound = b.CreateBinaryIntrinsic(isSigned ? Intrinsic::ssub_sat : Intrinsic::usub_sat,
                                           counted.bound, distance);
    Value *ahead =
        b.CreateMul(b.CreateZExtOrTrunc(lane, type), ConstantInt::get(type, counted.apart), "ahead",
                    /*NUW=*/true, /*NSW=*/true);
    auto *variable = cast<PHINode>(map[counted.variable]);
    b.SetInsertPoint(jointHeader, jointHeader->begin());
    PHINode *common = b.CreatePHI(type, 2, "joint");
    b.SetInsertPoint(jointHeader, jointHeader->getFirstInsertionPt());
    Value *own = b.CreateAdd(common, ahead, "i");
    Value *next = IRBuilder<>(jointLatch->getTerminator()).CreateAdd(common, counted.step);
    common->addIncoming(first, jointFront);
    common->addIncoming(next, jointLatch);
    variable->replaceAllUsesWith(own);
    variable->eraseFromParent();
    b.SetInsertPoint(branch);
    branch->setCondition(b.CreateICmp(counted.test->getPredicate(), common, bound));

    // No lane has steps left if lane 0 has none, unless a sum runs over.
    b.SetInsertPoint(rest);
    APInt largest =
        isSigned ? APInt::getSignedMaxValue(type->getBitWidth()) : APInt::getMaxValue(type->getBitWidth());
    Value *limit = ConstantInt::get(type, largest - cast<ConstantInt>(distance)->getValue());
    Value *left = b.CreateOr(b.CreateICmp(counted.test->getPredicate(), common, counted.bound),
                             b.CreateICmp(counted.test->getSwappedPredicate(), common, limit));
    b.CreateCondBr(left, alone, exit);
    CallInst::Create(barrier(*strip.getParent()), "", alone->getTerminator()->getIterator());
    for (PHINode &phi : header->phis())
      phi.setIncomingValueForBlock(alone, &phi == counted.variable ? own : inJoint(map, &phi));
    for (PHINode &phi : exit->phis()) {
      Value *last = phi.getIncomingValueForBlock(header);
      Value *joint = last == counted.variable ? own : inJoint(map, last);
      phi.addIncoming(joint, rest);
    }
  }

  Function &strip;
  CallInst *lane;
  const uint32_t lanes;
  UniformFlow flow;
  DenseSet<BasicBlock *> alone;
  LaneDistance apart;
};

} // namespace

bool isCandidate(const llvm::Loop &loop) {
  if (!loop.isInnermost() || !loop.getLoopLatch() || findOptionMDForLoop(&loop, "llvm.loop.unroll.full"))
    return false;
  return none_of(loop.blocks(), [](BasicBlock *block) {
    return any_of(
        *block, [](Instruction &instruction) { return instruction.isAtomic() || instruction.isVolatile(); });
  });
}

void splitLoops(Function &strip, CallInst *lane, uint32_t lanes) {
  simplifyLoops(strip);
  Splitter(strip, lane, lanes).run();
}

unsigned joinLoops(Function &strip, CallInst *lane) {
  simplifyLoops(strip);
  UniformFlow flow(strip);
  LaneDistance apart(flow, lane);
  DenseSet<BasicBlock *> alone = flow.partedBlocks();
  DominatorTree tree(strip);
  LoopInfo info(tree);
  SmallVector<Instruction *> ends;
  for (llvm::Loop *loop : info.getLoopsInPreorder())
    if (isCandidate(*loop) && !alone.contains(loop->getHeader()) && !alone.contains(loop->getLoopLatch()) &&
        apart.suits(*loop))
      ends.push_back(loop->getLoopLatch()->getTerminator());
  for (Instruction *end : ends)
    CallInst::Create(barrier(*strip.getParent()), "", end->getIterator());
  return unsigned(ends.size());
}

} // namespace offload
