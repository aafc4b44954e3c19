//===- regions.cpp - The code between barriers as loops over threads --------===//
//
// The code of one thread is cut at its barriers, at branches that decide which barrier comes next, and where
// ways from different such places join. Each piece, a region, then runs for all threads of a block before the
// next one does: it becomes loops over the threads, which vectorize again. The branches between regions are
// taken once for the block, so they must be the same for all its threads; kernels in which a thread may miss
// a barrier are left to the coroutines of spmd.cpp.
//
// What a region computes and another one uses is kept: not at all where it is cheap to compute again from
// arguments and ids, once where it is the same for all threads, else in an array with a place per thread. The
// idea is that of "work-item loops" (Jääskeläinen et al., pocl: A Performance-Portable OpenCL Implementation,
// 2014).
//
//===----------------------------------------------------------------------===//

#include "cpu/regions.h"
#include "cpu/block_lanes.h"
#include "names.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace offload {
namespace {

/// A failed assertion ends the launch and never comes back. For the flow of control it is as if it did,
/// so that an assertion does not part the threads.
void closeFailures(Function &code) {
  for (BasicBlock &block : code) {
    auto *end = dyn_cast<UnreachableInst>(block.getTerminator());
    BasicBlock *before = block.getSinglePredecessor();
    auto *branch = end && before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
    if (!branch || !branch->isConditional())
      continue;
    BasicBlock *other = branch->getSuccessor(branch->getSuccessor(0) == &block ? 1 : 0);
    for (PHINode &phi : other->phis())
      phi.addIncoming(PoisonValue::get(phi.getType()), &block);
    BranchInst::Create(other, end->getIterator());
    end->eraseFromParent();
  }
}

} // namespace

bool makeRegions(Function &code, ArrayRef<Value *> blockDim, const RegionLimits &limits, uint32_t warpSize) {
  RegionCode pieces(code, blockDim, limits.threads);
  EliminateUnreachableBlocks(code);
  closeFailures(code);
  BlockArrays lanes = lowerLanes(code, blockDim, pieces.most, warpSize);
  pieces.shared = lanes.arrays;
  simplifyLoops(code);

  SmallVector<CallInst *> barriers;
  for (Instruction &instruction : instructions(code))
    if (CallInst *call = callOf(instruction, kBarrier))
      barriers.push_back(call);
  DenseSet<BasicBlock *> waits;
  SetVector<BasicBlock *> entries;
  entries.insert(&code.getEntryBlock());
  for (CallInst *call : barriers) {
    entries.insert(SplitBlock(call->getParent(), call->getNextNode()));
    waits.insert(call->getParent());
    call->eraseFromParent();
  }

  UniformFlow flow(code);
  ThreadArrays made;
  if (!cutIntoRegions(pieces, waits, entries, flow) || !keepAcrossRegions(pieces, flow, made) ||
      made.bytes + lanes.bytes > limits.bytes || !findExits(pieces, flow))
    return false;
  buildRegionLoops(pieces, made);
  if (limits.strips)
    for (Region &region : pieces.regions)
      stripRegion(pieces, region, made, warpSize, limits.strips);
  return true;
}

} // namespace offload
