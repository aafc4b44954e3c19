//===- block_lanes.h - Lanes of a warp that wait with their block -----------===//
#pragma once

#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/IRBuilder.h"

namespace offload {

/// The instruction as a call of a function whose name starts so; null where it is none.
llvm::CallInst *callOf(llvm::Instruction &instruction, llvm::StringRef prefix);

/// A thread's number in its block, from its ids.
llvm::Value *linearThread(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> blockDim, llvm::Value *x,
                          llvm::Value *y, llvm::Value *z);

struct BlockArrays {
  llvm::DenseSet<llvm::AllocaInst *> arrays;
  uint64_t bytes = 0;
};

/// Replaces what lanes tell each other (kExchange, kActiveLanes) in one thread's code by barriers of the
/// block and arrays for a block of at most `most` threads. What is reached by all threads of a block is
/// reached by all lanes of a warp; other code must not be given.
BlockArrays lowerLanes(llvm::Function &code, llvm::ArrayRef<llvm::Value *> blockDim, uint32_t most,
                       uint32_t warpSize);

} // namespace offload
