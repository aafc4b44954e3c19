//===- long_blocks.h - Blocks of many accesses in NVIDIA's kernels --------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// What joins neighbouring accesses in LLVM's code generator sees blocks of many in parts: it compares each
/// access with all between it and where it would go, which takes seconds for a thousand.
void divideLongBlocks(llvm::Module &module);

} // namespace offload
