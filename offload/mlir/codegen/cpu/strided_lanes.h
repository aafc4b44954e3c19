//===- strided_lanes.h - Vectors of elements that lie apart ----------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Gathers and scatters of whole vectors whose lanes are evenly spaced become a load or store per lane: their
/// addresses follow from the first one, and processors need longer to take a vector of addresses apart.
struct StridedLanesPass : llvm::PassInfoMixin<StridedLanesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
