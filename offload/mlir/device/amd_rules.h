//===- amd_rules.h - Operands that AMD's chips take or not ----------------===//
#pragma once

#include "device/vendor_rules.h"

#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"

namespace offload {

/// That an operation needs another chip, with what to do.
std::string needsChip(llvm::StringRef name, const llvm::Twine &wanted, const ChipName &where);

/// Why the chip, which has the operation, does not have it with these types or constants: LLVM ends the
/// process there, or prints instructions of its own.
std::optional<std::string> whyNotOperands(mlir::Operation *op, const mlir::amdgpu::Chipset &chip,
                                          const ChipName &where);

} // namespace offload
