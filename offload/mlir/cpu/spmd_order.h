//===- spmd_order.h - The order in which threads of a warp wait for others //
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"

namespace offload {

/// The blocks that can be reached, so that threads which wait in the last of these blocks until no other
/// thread of their warp waits in an earlier one meet again where their ways join: a block comes after the
/// blocks that lead to it, and what follows a loop after all of the loop.
llvm::SmallVector<llvm::BasicBlock *> meetingOrder(llvm::Function &function);

} // namespace offload
