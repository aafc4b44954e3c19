//===- softmax.h - linalg.softmax written out -----------------------------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace offload {

/// Puts what a softmax of floating-point numbers on buffers computes in its place.
void writeSoftmax(mlir::linalg::SoftmaxOp op);

} // namespace offload
