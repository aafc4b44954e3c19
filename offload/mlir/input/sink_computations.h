//===- sink_computations.h - What kernels compute for themselves ----------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace offload {

/// Has a launch's body compute constants and sizes that it uses, in place of the code around it: they are no
/// arguments of its kernel then.
void sinkComputations(mlir::gpu::LaunchOp launch);

} // namespace offload
