//===- region_cuts.cpp - Where a thread's code is cut into regions ----------===//

#include "cpu/regions.h"

#include "llvm/IR/CFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace offload {
namespace {

class Cutter {
public:
  Cutter(RegionCode &pieces, const DenseSet<BasicBlock *> &waits, SetVector<BasicBlock *> &entries,
         UniformFlow &flow)
      : pieces(pieces), waits(waits), entries(entries), flow(flow) {}

  bool cut() { return cutAtBranches() && assign(); }

private:
  bool hasWait(ArrayRef<BasicBlock *> blocks) const {
    return any_of(blocks, [&](BasicBlock *block) { return waits.contains(block); });
  }

  /// False where a branch that parts the threads has a barrier behind it, before its ways join again.
  bool cutAtBranches() {
    for (BasicBlock *branch : flow.partingBlocks())
      if (hasWait(flow.between(branch)))
        return false;
    for (BasicBlock &branch : pieces.code) {
      if (branch.getTerminator()->getNumSuccessors() < 2 || flow.partingBlocks().contains(&branch) ||
          !hasWait(flow.between(&branch)))
        continue;
      for (BasicBlock *next : successors(&branch))
        entries.insert(next);
      if (BasicBlock *join = flow.join(&branch))
        entries.insert(join);
    }
    return true;
  }

  /// Every block belongs to the region from whose entry it is reached; one that is reached from two becomes
  /// an entry. False where a block in front of a loop's header would be both.
  bool assign() {
    for (bool again = true; again;) {
      again = false;
      pieces.regions.clear();
      pieces.regionOf.clear();
      for (BasicBlock *entry : SmallVector<BasicBlock *>(entries.begin(), entries.end())) {
        unsigned number = unsigned(pieces.regions.size());
        pieces.regions.push_back({});
        pieces.regions.back().entry = entry;
        SmallVector<BasicBlock *> open = {entry};
        while (!open.empty()) {
          BasicBlock *block = open.pop_back_val();
          auto [known, isNew] = pieces.regionOf.try_emplace(block, number);
          if (!isNew) {
            if (known->second != number)
              again |= entries.insert(block);
            continue;
          }
          pieces.regions.back().blocks.push_back(block);
          for (BasicBlock *next : successors(block))
            if (!entries.contains(next))
              open.push_back(next);
        }
      }
    }
    // An inner loop's header as an entry would make the loop's iterations steps of the block.
    for (Region &region : pieces.regions)
      for (BasicBlock *before : predecessors(region.entry))
        if (pieces.numberOf(before) == pieces.numberOf(region.entry) && !splitEntry(region))
          return false;
    return true;
  }

  /// Puts a block of its own in front of an entry to which its region comes back without a barrier.
  bool splitEntry(Region &region) {
    unsigned number = pieces.numberOf(region.entry);
    SmallVector<BasicBlock *> outside;
    for (BasicBlock *before : predecessors(region.entry))
      if (pieces.numberOf(before) != number)
        outside.push_back(before);
    if (outside.empty())
      return false;
    BasicBlock *front = SplitBlockPredecessors(region.entry, outside, ".front");
    if (!front)
      return false;
    for (PHINode &phi : front->phis())
      flow.setDiffers(&phi); // not known any more
    entries.remove(region.entry);
    entries.insert(front);
    pieces.regionOf[front] = number;
    region.entry = front;
    region.blocks.insert(region.blocks.begin(), front);
    return true;
  }

  RegionCode &pieces;
  const DenseSet<BasicBlock *> &waits;
  SetVector<BasicBlock *> &entries;
  UniformFlow &flow;
};

} // namespace

bool cutIntoRegions(RegionCode &pieces, const DenseSet<BasicBlock *> &waits, SetVector<BasicBlock *> &entries,
                    UniformFlow &flow) {
  return Cutter(pieces, waits, entries, flow).cut();
}

} // namespace offload
