//===- serial_sums.h - Loops that wait for their own sum --------------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Keeps loops of unknown length that add to one number, step after step, as they are. Steps wait for the sum
/// anyway, so unrolling gains nothing, and a second loop for what is left over costs the processor another
/// guess where a loop ends: much, where rows are short and of different lengths.
struct SerialSumsPass : llvm::PassInfoMixin<SerialSumsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
