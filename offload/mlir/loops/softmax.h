//===- softmax.h - linalg.softmax written out -----------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace offload {

/// Puts what a softmax of floating-point numbers on buffers computes in its place: as a launch only where the
/// function `mayLaunch`.
void writeSoftmax(mlir::linalg::SoftmaxOp op, bool mayLaunch);

} // namespace offload
