//===- active_lanes.h - Operations that depend on who else is there -------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace offload {

/// In a module that is half lowered: keeps the operations of a target's own dialect, LLVM's intrinsics and
/// calls apart, so that blocks of two branches which look the same are not made one.
void keepBranchesApart(mlir::Operation *root, llvm::StringRef dialect);
/// Takes the marks away again, once nothing joins blocks any more.
void removeMarks(mlir::Operation *root);

} // namespace offload
