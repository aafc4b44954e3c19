//===- uniform_flow.h - What is the same for all threads of a block ---------===//
#pragma once

#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/PostDominators.h"

namespace offload {

/// Metadata of loads that give all threads of a block the same.
inline constexpr char kCommon[] = "offload.common";

/// Which values of one thread's code may differ between the threads of a block, and which branches therefore
/// part them. Threads that load from one place get the same: who changed it between two barriers would race
/// with those who read it. Atomic operations do not race, and what they give differs.
class UniformFlow {
public:
  explicit UniformFlow(llvm::Function &code);

  bool differs(const llvm::Value *value) const { return varying.contains(value); }
  void setDiffers(const llvm::Value *value) { varying.insert(value); }

  /// Blocks whose branch parts the threads.
  const llvm::DenseSet<llvm::BasicBlock *> &partingBlocks() const { return parting; }

  /// The blocks between a branch and the place where all its ways have joined.
  llvm::SmallVector<llvm::BasicBlock *> between(llvm::BasicBlock *branch) const;
  /// That place; null where the ways join only at the function's end.
  llvm::BasicBlock *join(llvm::BasicBlock *branch) const;

  /// Blocks to which not all threads may come together.
  llvm::DenseSet<llvm::BasicBlock *> partedBlocks() const;

private:
  void mark(llvm::Instruction *instruction);
  void markUsers(llvm::Instruction *instruction);

  llvm::PostDominatorTree tree;
  llvm::DenseSet<const llvm::Value *> varying;
  llvm::DenseSet<llvm::BasicBlock *> parting;
  llvm::SmallVector<llvm::Instruction *> work;
};

} // namespace offload
