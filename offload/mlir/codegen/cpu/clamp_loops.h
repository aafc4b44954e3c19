//===- clamp_loops.h - Loops without the iterations that do nothing -------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// `for (i = 0; i < size; ++i) if (low <= i && i < high) work(i);` becomes a loop from low to high. A loop
/// over the threads of a block gets rid of its bounds check so, and vectorizes without masks, which x86-64
/// has only from level 3 on. Goes before the vectorizer.
struct ClampLoopsPass : public llvm::PassInfoMixin<ClampLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
