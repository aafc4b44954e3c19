//===- many_calls.h - Host functions of many calls --------------------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Values that are used between very many calls are loaded from the stack there: few registers keep theirs
/// through calls, and LLVM's register allocator takes time that grows with the square of such uses to give
/// each part of such a value one.
void keepInMemoryAcrossCalls(llvm::Module &module);

} // namespace offload
