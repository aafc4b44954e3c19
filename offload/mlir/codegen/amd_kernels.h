//===- amd_kernels.h - What LLVM may rely on in kernels for AMD GPUs -------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Says that no kernel comes back to itself, as nothing may call one. Otherwise LLVM takes those that call
/// functions for recursive ones, whose stack has no size that is known before.
void denyRecursion(llvm::Module &module);

/// For chips that keep a block's id y in the low and its id z in the high half of one register: kernels that
/// use y alone are said to use z, too. Otherwise LLVM takes the whole register for y, which AMDGPUUsage does
/// not promise. Call after optimization, which finds out what they use.
void splitBlockIds(llvm::Module &module);

} // namespace offload
