//===- odd_loads.h - Masked loads of an odd number of elements ------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Gives masked loads of vectors as many elements as the next power of two, the further ones masked off. LLVM
/// 22 does so itself for x86, but leaves the further ones of the mask open: a register of which the known
/// ones are all off is then loaded as if all were on, from memory that may not be the program's.
void widenOddLoads(llvm::Module &module);

} // namespace offload
