//===- zero_signs.h - Products that AMD GPUs round to 16 bits -------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes products of 32 bits that are rounded to 16 as fma with -0.0, which is the same number. LLVM 22
/// makes one instruction of both (v_fma_mixlo_f16, v_fma_mixhi_f16) and adds +0.0, which makes a zero
/// positive; later versions add -0.0.
void keepZeroSigns(llvm::Module &module);

} // namespace offload
