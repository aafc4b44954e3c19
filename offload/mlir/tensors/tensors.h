//===- tensors.h - Programs on tensors ------------------------------------===//
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace offload {

/// Whether host code has tensors that can be given memory: none of them has an encoding.
bool hasTensors(mlir::Operation *root);

/// Puts a copy of a ranked tensor, in memory of its own, in its place.
void copyTensor(mlir::OpOperand &operand);

/// The first elements of memory as a memref of that type and sizes, without gaps between its rows.
mlir::Value asWhole(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory,
                    llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::MemRefType type);

/// Threads that allocate nothing free nothing: what MLIR's deallocation asks there is answered.
void dropOwnership(mlir::Operation *root);

/// Is the memory another iteration's, too, of a loop around the allocation?
bool leavesIteration(mlir::Value memory);

/// Is the operation in a loop whose iterations are threads, unless its author says which loops are blocks?
bool isInParallel(mlir::Operation *op);

/// On a memref.cast that promises no more than is true: its author wrote it, or it is of whole memory.
inline constexpr char kHidesNoGaps[] = "offload.hides_no_gaps";

/// On a memref.alloc that the author of a program with tensors wrote.
inline constexpr char kWritten[] = "offload.written";

} // namespace offload
