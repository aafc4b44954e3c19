//===- narrow_quotients.h - Division of integers of less than 32 bits ------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Makes quotients and remainders of 8 and 16 bits ones of 32: without optimization, LLVM 22 joins a quotient
/// and a remainder of the same numbers to one operation, which AMD's code generator cannot select.
void widenQuotients(llvm::Module &module);

} // namespace offload
