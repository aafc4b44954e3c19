//===- large_arrays.h - Arrays that no cache holds -------------------------===//
#pragma once

#include "llvm/IR/Instructions.h"

namespace offload {

/// What processors write to memory at once.
inline constexpr uint64_t kLine = 64;

/// The load of the array's address among the kernel's parameters (cpu/spmd_abi.h); null for other memory.
const llvm::Instruction *arrayOf(const llvm::StoreInst &store);

/// At the begin of `k.blocks`: is the array too large to stay in a cache? Its sizes are parameters of the
/// kernel; the launch says what is large.
llvm::Value *isLarge(llvm::Function &function, const llvm::Instruction &array, uint64_t elementSize);

} // namespace offload
