//===- regions.h - The pieces between the barriers of a thread's code -------===//
#pragma once

#include "cpu/thread_loops.h"
#include "cpu/uniform_flow.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Instructions.h"

namespace offload {

/// Code that runs for all threads of a block before another region does.
struct Region {
  llvm::BasicBlock *entry;
  llvm::SmallVector<llvm::BasicBlock *> blocks;
  llvm::BasicBlock *chooser = nullptr; // ends in a branch to several regions
  llvm::BasicBlock *next = nullptr;    // without one: the entry of the region that follows; null at the end
  llvm::AllocaInst *choice = nullptr;  // where the chooser's condition is kept
  llvm::BasicBlock *begin = nullptr, *end = nullptr;
  ThreadLoops loops;
  llvm::Value *thread = nullptr; // linear id
};

/// One thread's code, cut into regions.
struct RegionCode {
  RegionCode(llvm::Function &code, llvm::ArrayRef<llvm::Value *> blockDim, uint32_t most)
      : code(code), blockDim(blockDim), most(most) {}

  unsigned numberOf(llvm::BasicBlock *block) const { return regionOf.lookup(block); }
  Region &of(llvm::BasicBlock *block) { return regions[numberOf(block)]; }
  bool isEntry(llvm::BasicBlock *block) const {
    auto found = regionOf.find(block);
    return found != regionOf.end() && regions[found->second].entry == block;
  }
  /// Memory at the function's start.
  llvm::AllocaInst *slot(llvm::Type *type, const llvm::Twine &name) {
    return new llvm::AllocaInst(type, 0, nullptr, name, start->end());
  }
  /// Where an operand is used: a phi's is used at the end of the block it comes from.
  static llvm::Instruction *placeOf(llvm::Use &use) {
    auto *user = llvm::cast<llvm::Instruction>(use.getUser());
    if (auto *phi = llvm::dyn_cast<llvm::PHINode>(user))
      return phi->getIncomingBlock(use)->getTerminator();
    return user;
  }

  llvm::Function &code;
  llvm::ArrayRef<llvm::Value *> blockDim;
  uint32_t most;                     // threads of a block
  llvm::BasicBlock *start = nullptr; // the function's memory; branches to the first region
  llvm::SmallVector<Region> regions;
  llvm::DenseMap<llvm::BasicBlock *, unsigned> regionOf;
  llvm::DenseSet<llvm::AllocaInst *> shared; // one memory for the block
};

/// Uses of a thread's memory that become the thread's place in an array.
struct ThreadArrays {
  struct Use {
    llvm::Use *use;
    llvm::AllocaInst *array;
    llvm::Type *type;
  };
  llvm::SmallVector<Use> uses;
  llvm::DenseSet<llvm::AllocaInst *> arrays;
  llvm::SmallVector<llvm::AllocaInst *> replaced; // which nothing uses any more
  llvm::SmallVector<llvm::AllocaInst *> own;      // memory of a thread that one region uses
  uint64_t bytes = 0;
};

/// region_cuts.cpp: finds the regions. `waits` are the blocks that end at a barrier, `entries` begin with the
/// function's entry and what follows each barrier. False where threads may not come to each barrier together.
bool cutIntoRegions(RegionCode &pieces, const llvm::DenseSet<llvm::BasicBlock *> &waits,
                    llvm::SetVector<llvm::BasicBlock *> &entries, UniformFlow &flow);

/// region_values.cpp: what threads keep from region to region goes through memory. False for memory that has
/// no place in the function's frame.
bool keepAcrossRegions(RegionCode &pieces, UniformFlow &flow, ThreadArrays &made);

/// region_loops.cpp: what follows each region. False where that is not one choice for all threads.
bool findExits(RegionCode &pieces, const UniformFlow &flow);
/// region_loops.cpp: makes each region loops over the threads.
void buildRegionLoops(RegionCode &pieces, const ThreadArrays &made);
/// region_strips.cpp: where a region has loops, its threads go through them in strips (strips.h).
void stripRegion(RegionCode &pieces, Region &region, const ThreadArrays &made, uint32_t warpSize,
                 uint32_t mostLanes);

} // namespace offload
