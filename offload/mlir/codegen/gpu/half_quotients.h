//===- half_quotients.h - Approximate division of f16 on GPUs ---------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Has quotients of f16 that may be products with a reciprocal (arcp) be approximate ones (afn), but for
/// those by constants whose reciprocals are as exact. LLVM takes reciprocals of f16 out of loops and shares
/// them among quotients, and those of divisors below 2^-16 are infinite. Call before optimization.
void keepHalfQuotients(llvm::Module &module);

/// Writes approximate quotients of f16 as products of f32, for AMD GPUs. LLVM multiplies by a reciprocal,
/// which is infinite in f16 for divisors below 2^-16: 1e-5 / 1e-5 was infinity. In f32 it is finite for each
/// divisor but zero. Call after optimization.
void writeHalfQuotients(llvm::Module &module);

} // namespace offload
