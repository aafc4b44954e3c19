//===- slow_ranges.h - Functions whose ranges LLVM follows for minutes ------===//
#pragma once

#include "llvm/IR/PassInstrumentation.h"

namespace offload {

/// LLVM's propagation of constants (SCCP) follows the range that integers are in, and goes on from each one
/// that has grown to all that is made of it, depth first: where twenty numbers are each made of the one
/// before in two ways, and the first counts a loop's iterations, the last one grows a million times for each
/// time that the first does. Functions of such numbers are left out of it, and modules of theirs.
void skipSlowRanges(llvm::PassInstrumentationCallbacks &callbacks);

} // namespace offload
