//===- loop_assertions.h - What steps of loops ask for, in front of them --===//
#pragma once

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

namespace offload {

/// Takes an assertion of two sizes out of the loops of threads that it is in, or as many of the innermost
/// ones as it can: what is asserted in front of them is true of the first and the last steps that run. It
/// stays where that cannot be computed there, or where not each step comes to the assertion. Fails, with an
/// error, where it never holds.
mlir::LogicalResult assertInFront(mlir::cf::AssertOp op);

} // namespace offload
