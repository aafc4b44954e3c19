//===- size_bounds.h - Sizes of tensors that arithmetic goes through ------===//
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace offload {

/// To be called before MLIR's own registrations: the first to say it is the one that is asked.
void registerSizeBounds(mlir::DialectRegistry &registry);

} // namespace offload
