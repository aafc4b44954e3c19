//===- aligned_starts.h - Loops that begin with a cache line --------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// A loop of `k.blocks` (host_abi.h) that writes element after element of a large array, and begins somewhere
/// in a cache line, as behind a border, leaves the line to a few iterations of a copy of the loop. Vectors of
/// the loop itself are aligned then, which stores around the caches need (streaming_stores.h). Before the
/// vectorizer; wants loops in simplified form.
struct AlignedStartsPass : llvm::PassInfoMixin<AlignedStartsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
