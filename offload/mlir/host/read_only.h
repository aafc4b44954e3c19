//===- read_only.h - Arguments whose memory a program only reads ----------===//
#pragma once

#include "mlir/IR/Value.h"

namespace offload {

/// Does all that is done with the memory of an argument, in its function and in what that calls or launches,
/// only read it? False where that is not known.
bool isOnlyRead(mlir::BlockArgument argument);

} // namespace offload
