//===- unverified.h - Before MLIR verifies a program ----------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace offload {

/// Refuses operations of vendors whose verifiers in MLIR 22 end the process, at their places, and writes
/// those out in words that only the verifier does not know. What it looks at may be wrong in any other way.
mlir::LogicalResult settleUnverified(mlir::ModuleOp module);

} // namespace offload
