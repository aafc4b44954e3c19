//===- half_quotients.h - Approximate division of f16 on AMD GPUs ----------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes approximate quotients of f16 as products of f32. LLVM multiplies by a reciprocal, which is infinite
/// in f16 for divisors below 2^-16: 1e-5 / 1e-5 was infinity. In f32 it is finite for each divisor but zero.
void writeHalfQuotients(llvm::Module &module);

} // namespace offload
