//===- shared_operands.h - Values that come from one in many ways -----------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// LLVM's vectorizer asks of each value whether all lanes have the same one, and goes through its operands
/// for that, and through theirs, with no note of those it has seen: from the thirtieth square of a number
/// that all threads load there are a billion ways to that load. What too many ways lead from is frozen here,
/// where it turns back. Goes right before the vectorizer.
struct SharedOperandsPass : llvm::PassInfoMixin<SharedOperandsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
