//===- spaces.h - Whose memory an address space is of ---------------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace offload {

/// A memref's memory space: by MLIR's name, or by the number that LLVM's code generators for GPUs have for
/// it.
inline bool isSpace(mlir::Attribute space, mlir::gpu::AddressSpace named, int64_t number) {
  if (auto given = llvm::dyn_cast_or_null<mlir::gpu::AddressSpaceAttr>(space))
    return given.getValue() == named;
  auto given = llvm::dyn_cast_or_null<mlir::IntegerAttr>(space);
  return given && given.getInt() == number;
}

/// Memory of a block.
inline bool isWorkgroup(mlir::Attribute space) {
  return isSpace(space, mlir::gpu::AddressSpace::Workgroup, 3);
}

/// Memory of a thread.
inline bool isPrivate(mlir::Attribute space) { return isSpace(space, mlir::gpu::AddressSpace::Private, 5); }

} // namespace offload
