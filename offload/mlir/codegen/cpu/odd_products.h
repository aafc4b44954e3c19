//===- odd_products.h - Products of an odd number of integers -------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes the product of all elements of a vector as multiplications, where there is an odd number of them.
/// LLVM 22 makes the product of bits that are extended with their sign 1 where all are set, which holds for
/// an even number of -1 alone. It finds such bits behind other operations, too, so the vectors are not looked
/// at.
void writeOddProducts(llvm::Module &module);

} // namespace offload
