//===- check_described.h - What programs say of their functions -----------===//
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace offload {

/// Why what an operation says of itself for Python (offload.doc, offload.name, offload.optional) cannot be
/// kept; nothing where it can, or where it says nothing.
std::optional<std::string> whyNotDescribed(mlir::Operation *op);

} // namespace offload
