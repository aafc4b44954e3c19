//===- ascending_loads.h - Memory that is read from front to back -----------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Puts what a step of a loop loads from one array, and what is done with each of these values at once, into
/// the order of the addresses. Processors fetch ahead of who reads upwards; InstCombine, which moves
/// computations to where they are used, turns their order around (twice the time of a sum on Zen 4).
struct AscendingLoadsPass : llvm::PassInfoMixin<AscendingLoadsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
