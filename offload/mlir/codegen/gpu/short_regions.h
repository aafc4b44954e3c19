//===- short_regions.h - Blocks of many accesses in AMD's kernels ---------===//
#pragma once

namespace llvm {
class FunctionPass;
}

namespace offload {

/// LLVM 22's scheduler behind the allocation of registers looks for accesses to cluster, and asks for each
/// pair whether the one can wait for the other; with registers there are so many orders to keep that a block
/// of six hundred accesses takes a second, and the time grows with more than their square. The pass lets the
/// scheduler begin anew after so many accesses of a block: barriers of scheduling, which are no instructions
/// of the chip. It is to run behind the allocation of registers and before that scheduler.
llvm::FunctionPass *createShortRegionsPass();

} // namespace offload
