//===- check_lowered.h - Is everything in a module an operation of LLVM? --===//
#pragma once

#include "mlir/IR/Operation.h"

namespace offload {

/// Emits an error at every operation in `root` that LLVM IR has no counterpart for; was there one? `target`
/// is the name of the target, empty for host code.
bool refuseUnlowered(mlir::Operation *root, llvm::StringRef target);

} // namespace offload
