//===- reciprocal_roots.h - 1 / sqrt(x) from an estimate --------------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// For processors with AVX-512VL: makes 1 / sqrt(x) of single precision, where both operations may be
/// approximate (afn), the processor's estimate and one step of Newton's method. In loops that is several
/// times as fast as the root and the division, neither of which is pipelined well. The result is off by at
/// most 1.2 units of the last place, 1.5 where it is computed exactly and rounded twice; 0, infinity,
/// negative numbers, subnormal numbers and NaN give what they give there.
///
/// Runs when loops are vectorized: vectors and single numbers are computed alike.
struct ReciprocalRootsPass : llvm::PassInfoMixin<ReciprocalRootsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
