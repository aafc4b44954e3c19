//===- thread_loops.h - Loops over the threads of a block -------------------===//
#pragma once

#include "llvm/IR/IRBuilder.h"

namespace offload {

/// `for (i = first; i < last; ++i)`.
struct Loop {
  llvm::PHINode *variable;
  llvm::BasicBlock *body, *latch, *exit;
  llvm::BranchInst *backEdge;
};

/// Begins a loop at the builder's place and leaves the builder in its body.
Loop beginLoop(llvm::IRBuilder<> &b, llvm::Value *first, llvm::Value *last, const llvm::Twine &name);
/// Ends the body at the builder's place and leaves the builder behind the loop.
void endLoop(llvm::IRBuilder<> &b, Loop &loop);

/// The loops over z, y and x of a block, x innermost.
struct ThreadLoops {
  Loop x, y, z;
};
ThreadLoops beginThreads(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> blockDim);

/// Gives each loop of the author's one block in front of it, one back edge, and exits of its own.
void simplifyLoops(llvm::Function &code);

/// Says that no access of the group in one iteration depends on one in another. `unroll` is for loops that do
/// not vectorize: how many iterations come at once, where it is not 0.
void markParallel(llvm::BranchInst *backEdge, llvm::MDNode *group, unsigned unroll = 0);
/// Whether that has been said: it is a loop over threads, none of the author's.
bool isParallel(const llvm::BranchInst &backEdge);

struct RegionLimits {
  uint32_t threads; // a bound of the block's sizes, multiplied
  uint64_t bytes;   // of arrays
  uint32_t strips;  // the most lanes of a strip that a region may become (strips.h); 0 for none
};
/// Rewrites the code of one thread, which has barriers, to code that runs all threads of a block: what stands
/// between barriers becomes loops over the threads, and what threads keep from one such region to the next
/// lies in arrays. Possible where all threads come to each barrier together, as far as the control flow
/// shows. False where it is not; the function is spoilt then.
///
/// The thread's place is what the functions kThreadId give; `blockDim` are constants or arguments of the
/// function.
bool makeRegions(llvm::Function &code, llvm::ArrayRef<llvm::Value *> blockDim, const RegionLimits &limits,
                 uint32_t warpSize);

} // namespace offload
