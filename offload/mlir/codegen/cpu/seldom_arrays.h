//===- seldom_arrays.h - Arrays that are needed seldom ----------------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Gives code that the usual way goes around, and that alone uses an array of a block's threads at places
/// that are not constant, a copy of that array. On the usual way the array may then be registers.
struct SeldomArraysPass : llvm::PassInfoMixin<SeldomArraysPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
