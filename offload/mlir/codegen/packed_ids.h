//===- packed_ids.h - Block ids that share a register, on AMD GPUs ---------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// For chips that keep a block's id y in the low and its id z in the high half of one register: kernels that
/// use y alone are said to use z, too. Otherwise LLVM takes the whole register for y, which AMDGPUUsage does
/// not promise.
void splitBlockIds(llvm::Module &module);

} // namespace offload
