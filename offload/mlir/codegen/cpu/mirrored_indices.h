//===- mirrored_indices.h - Indices that count down -------------------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Makes `i ^ 255` for an i that is at most 255 `255 - i` again, which LLVM simplified: the analysis of loops
/// understands the difference, so memory that is read backwards is read in vectors.
struct MirroredIndicesPass : llvm::PassInfoMixin<MirroredIndicesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
