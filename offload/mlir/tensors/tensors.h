//===- tensors.h - Programs on tensors ------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace offload {

/// Whether host code has tensors that can be given memory: none of them has an encoding.
bool hasTensors(mlir::Operation *root);

/// Puts a copy of a ranked tensor, in memory of its own, in its place.
void copyTensor(mlir::OpOperand &operand);

/// Is the memory another iteration's, too, of a loop around the allocation?
bool leavesIteration(mlir::Value memory);

/// Is the operation in a loop whose iterations are threads, unless its author says which loops are blocks?
bool isInParallel(mlir::Operation *op);

/// On a memref.cast that promises no more than is true: its author wrote it, or it is of whole memory.
inline constexpr char kHidesNoGaps[] = "offload.hides_no_gaps";

/// On a memref.alloc that the author of a program with tensors wrote.
inline constexpr char kWritten[] = "offload.written";

} // namespace offload
