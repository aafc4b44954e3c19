//===- workgroup_on_stack.h - Workgroup memory that may become registers ----===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// Gives functions with the attribute kWorkgroupBytes their workgroup memory on the stack: what the threads
/// of a block hand each other there may then stay in registers, and nothing is written that is not read. For
/// the time when loops over threads have the bounds that kernels check: a place that one thread alone writes
/// would earlier become a value that all of them choose.
struct WorkgroupOnStackPass : llvm::PassInfoMixin<WorkgroupOnStackPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
