//===- row_places.h - Kernels that only ask where in a row a thread is ------===//
#pragma once

#include "llvm/IR/Function.h"

namespace offload {

/// Whether a thread's code takes its x and its block's for nothing but `block * size + thread`, and has no
/// loops: then the threads of blocks in a row are one long row of threads. `size` is an argument or a
/// constant.
bool onlyCountsInRow(llvm::Function &code, llvm::Value *block, llvm::Value *size, llvm::Value *thread);

} // namespace offload
