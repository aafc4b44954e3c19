//===- check_types.h - Types that no program can have ---------------------===//
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace offload {

/// Why an operation cannot be compiled for any target because of a type that it has, takes or holds; nothing
/// where it can.
std::optional<std::string> whyNotTyped(mlir::Operation *op);

} // namespace offload
