//===- two_comparisons.h - Comparisons of bits on AMD GPUs ----------------===//
#pragma once

namespace llvm {
class FunctionPass;
}

namespace offload {

/// In LLVM 22, SIInstrInfo::optimizeCompareInstr takes the condition that S_AND_B32 leaves for `x & 1 != 0`,
/// and then writes the same instruction as S_BITCMP0 for `x & 1 == 0` behind it: what chose by the first
/// comparison chooses by its opposite. The pass gives every comparison of such a number but the first a copy
/// of it, in which LLVM does not look for a condition; it is to run just before the peephole optimizer.
llvm::FunctionPass *createTwoComparisonsPass();

} // namespace offload
