//===- region_loops.cpp - Regions as loops over the threads -----------------===//

#include "cpu/block_lanes.h"
#include "cpu/kernel_code.h"
#include "cpu/regions.h"
#include "names.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace offload {

bool findExits(RegionCode &pieces, const UniformFlow &flow) {
  for (Region &region : pieces.regions) {
    bool first = true;
    for (BasicBlock *block : region.blocks) {
      Instruction *end = block->getTerminator();
      SmallVector<BasicBlock *> targets;
      bool stays = false;
      for (BasicBlock *next : successors(block))
        if (pieces.isEntry(next))
          targets.push_back(next);
        else
          stays = true;
      if (isa<ReturnInst>(end))
        targets.push_back(nullptr);
      if (targets.empty())
        continue;
      bool one = all_of(targets, [&](BasicBlock *target) { return target == targets.front(); });
      if (!one) {
        if (stays || !first || flow.partingBlocks().contains(block) || !isa<BranchInst, SwitchInst>(end))
          return false;
        region.chooser = block;
      } else if (first) {
        region.next = targets.front();
      } else if (region.chooser || region.next != targets.front()) {
        return false;
      }
      first = false;
    }
  }
  return true;
}

namespace {

constexpr unsigned kUnrolled = 8; // iterations at once of loops that do not vectorize

class LoopBuilder {
public:
  LoopBuilder(RegionCode &pieces, const ThreadArrays &made)
      : pieces(pieces), made(made), context(pieces.code.getContext()) {}

  void build() {
    auto *done = BasicBlock::Create(context, "done", &pieces.code);
    ReturnInst::Create(context, done);
    for (Region &region : pieces.regions)
      region.begin = BasicBlock::Create(context, "region", &pieces.code);
    for (Region &region : pieces.regions)
      buildLoop(region);
    for (Region &region : pieces.regions)
      buildStep(region, done);
    BranchInst::Create(pieces.regions.front().begin, pieces.start);
    for (Region &region : pieces.regions)
      bindIds(region);
    for (auto &[use, array, type] : made.uses) {
      Instruction *place = RegionCode::placeOf(*use);
      Region &region = pieces.of(place->getParent());
      IRBuilder<> b(place);
      use->set(
          b.CreateInBoundsGEP(type, array, {b.getInt64(0), b.CreateZExt(region.thread, b.getInt64Ty())}));
    }
    for (AllocaInst *alloca : made.replaced)
      alloca->eraseFromParent();
    MDNode *group = MDNode::getDistinct(context, {});
    for (Region &region : pieces.regions) {
      bool ordered = markIndependent(region, group);
      markParallel(region.loops.x.backEdge, group, ordered && region.blocks.size() == 1 ? kUnrolled : 0);
    }
  }

private:
  /// The loops over threads around a region, up to where its last thread ends.
  void buildLoop(Region &region) {
    IRBuilder<> b(region.begin);
    region.loops = beginThreads(b, pieces.blockDim);
    region.thread = linearThread(b, pieces.blockDim, region.loops.x.variable, region.loops.y.variable,
                                 region.loops.z.variable);
    b.CreateBr(region.entry);
    BasicBlock *latch = region.loops.x.latch;
    if (region.chooser) {
      Instruction *end = region.chooser->getTerminator();
      region.choice = pieces.slot(end->getOperand(0)->getType(), "choice");
      new StoreInst(end->getOperand(0), region.choice, end->getIterator());
    }
    for (BasicBlock *block : region.blocks) {
      Instruction *end = block->getTerminator();
      if (isa<ReturnInst>(end)) {
        end->eraseFromParent();
        BranchInst::Create(latch, block);
      } else if (block != region.chooser) {
        for (unsigned i = 0; i < end->getNumSuccessors(); ++i)
          if (pieces.isEntry(end->getSuccessor(i)))
            end->setSuccessor(i, latch);
      }
    }
    b.SetInsertPoint(region.loops.x.exit);
    endLoop(b, region.loops.y);
    endLoop(b, region.loops.z);
    region.end = b.GetInsertBlock();
  }

  /// The way from a region to the next.
  void buildStep(Region &region, BasicBlock *done) {
    auto beginOf = [&](BasicBlock *entry) { return entry ? pieces.of(entry).begin : done; };
    IRBuilder<> b(region.end);
    if (!region.chooser) {
      b.CreateBr(beginOf(region.next));
      return;
    }
    Instruction *end = region.chooser->getTerminator(), *step = end->clone();
    step->setOperand(0, b.CreateLoad(region.choice->getAllocatedType(), region.choice));
    for (unsigned i = 0; i < step->getNumSuccessors(); ++i)
      step->setSuccessor(i, beginOf(end->getSuccessor(i)));
    b.Insert(step);
    end->eraseFromParent();
    BranchInst::Create(region.loops.x.latch, region.chooser);
  }

  void bindIds(Region &region) {
    const std::pair<const char *, Value *> axes[] = {
        {"x", region.loops.x.variable}, {"y", region.loops.y.variable}, {"z", region.loops.z.variable}};
    for (BasicBlock *block : region.blocks)
      for (Instruction &instruction : make_early_inc_range(*block))
        for (auto [axis, value] : axes)
          if (CallInst *call = callOf(instruction, (Twine(kThreadId) + axis).str())) {
            call->replaceAllUsesWith(value);
            call->eraseFromParent();
            break;
          }
  }

  /// Between two barriers the threads are not ordered, so no access of one may depend on another's. Private
  /// memory without a place per thread is left out: all iterations share it. Whether one thread's access must
  /// come before another's for all that, as the steps of an atomic operation.
  bool markIndependent(Region &region, MDNode *group) {
    bool ordered = false;
    for (BasicBlock *block : region.blocks)
      for (Instruction &instruction : *block) {
        Value *address = getLoadStorePointerOperand(&instruction);
        ordered |= instruction.hasMetadata(kOrdered);
        if (!address || instruction.isAtomic() || instruction.hasMetadata(kOrdered))
          continue;
        auto *alloca = dyn_cast<AllocaInst>(getUnderlyingObject(address));
        if (!alloca || made.arrays.contains(alloca) || pieces.shared.contains(alloca))
          instruction.setMetadata(LLVMContext::MD_access_group, group);
      }
    return ordered;
  }

  RegionCode &pieces;
  const ThreadArrays &made;
  LLVMContext &context;
};

} // namespace

void buildRegionLoops(RegionCode &pieces, const ThreadArrays &made) { LoopBuilder(pieces, made).build(); }

} // namespace offload
