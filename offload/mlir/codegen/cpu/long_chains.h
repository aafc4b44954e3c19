//===- long_chains.h - Long code in which each number is made of the last -===//
#pragma once

namespace llvm {
class Module;
}

namespace offload {

/// LLVM 22's code generator for x86 follows each number to the end of the chain that it is in, where each is
/// used once and an instruction overwrites one of its operands: a chain of 10,000 took a quarter of a minute.
/// This ends chains after some hundreds.
void divideLongChains(llvm::Module &module);

} // namespace offload
