//===- zero_signs.h - Signs of zeros on AMD GPUs --------------------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes what LLVM 22 gives the wrong zero on AMD GPUs.
///
/// 0.0 - x, and what it makes that of, such as -x + 0.0, is the operand -x of the instruction that takes it:
/// -0.0 where it should be 0.0. A zero is chosen for such a sum.
///
/// Where the chip rounds a product of 32 bits to 16 in one instruction (`mixes`: v_fma_mixlo_f16,
/// v_fma_mixhi_f16), LLVM adds +0.0 in it, which makes a zero positive; later versions add -0.0. Such
/// products are written as fma with -0.0, which is the same number.
void keepZeroSigns(llvm::Module &module, bool mixes);

} // namespace offload
