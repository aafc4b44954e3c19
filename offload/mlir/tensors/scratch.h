//===- scratch.h - Memory of threads whose size the run decides -----------===//
#pragma once

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace offload {

/// A size of a memref, as far as can be seen; null where it cannot.
mlir::OpFoldResult sizeOf(mlir::Value memory, int64_t axis);

/// Of what sizes of that value are parts in the block of an operation or around it: none of these is less.
llvm::SmallVector<mlir::OpFoldResult> sizesAround(mlir::Value size, mlir::Operation *op);

/// Bytes that an element takes at most; 0 where it has no size in whole ones.
int64_t bytesOf(mlir::Type element);

/// Puts a piece of memory that is allocated in front of the outermost parallel loop in the place of what an
/// iteration allocates. Null where its size, or the number of iterations, is not known there.
mlir::Value scratchFor(mlir::memref::AllocOp op, mlir::Operation *outermost);

} // namespace offload
