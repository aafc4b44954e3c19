//===- row_steps.h - Operations one after another on the same rows --------===//
#pragma once

#include "loops/linalg_steps.h"

#include <vector>

namespace offload {

// What a loop is, or a dimension of memory, where operations work on the same rows: a dimension of the rows,
// by number, or one of these.
inline constexpr int kAlongRow = -1;
inline constexpr int kUnit = -2; // of size one

/// Memory that a step reads or writes.
struct RowAccess {
  mlir::Value number; // in place of all below: the operand is no memory
  mlir::Value memory;
  mlir::Value buffer;           // the memory without what views of it add in dimensions of size one
  llvm::SmallVector<int> place; // what each dimension is

  bool isAlongRow() const { return llvm::is_contained(place, kAlongRow); }
};

/// An operation of linalg or a copy that does for each row, or for each element of each row, the same.
struct RowStep {
  mlir::Operation *op;
  std::optional<LinalgSteps> sums; // of one that reduces the rows
  llvm::SmallVector<int> loops;    // what each is; of a copy none
  llvm::SmallVector<RowAccess> inputs, outputs;
  llvm::SmallVector<mlir::Value> elsewhere; // memory that its body reads wherever it likes
  bool isOfElements;                        // or of rows
};

/// Steps in the order of the program; between them is nothing that they could disturb. No step needs what
/// another one does to other rows.
struct RowSteps {
  std::vector<RowStep> steps;
  mutable mlir::linalg::LinalgOp first; // one that reduces the rows: its loops are those of all steps
  llvm::SmallVector<unsigned> loops;    // of `first`: those of the rows, and the one along them
};

/// All of a block that are more than one operation, and reduce something.
std::vector<RowSteps> rowStepsOf(mlir::Block &block);

/// Whether a step may be done with whatever numbers there are: what it gives is not used.
bool isSpeculatableStep(const RowStep &step);

/// Whether writing the one may change the other. Of different arguments that steps use it may as a whole:
/// their elements in the same place are one.
bool mayOverlap(mlir::Value one, mlir::Value other);

/// Whether the memory that an argument is can be the whole of what another one is: callers of what works in
/// place give one array for both.
bool mayBeOne(mlir::Value argument, mlir::Value other);

/// Whether a buffer is memory that nothing but the steps uses.
bool isBetween(const RowSteps &rows, mlir::Value buffer);

/// Has what steps leave in memory of their own, until a later one writes as many elements elsewhere, be left
/// there at once. Returns the allocations that the steps then do without.
llvm::SmallVector<mlir::Operation *> keepInOutputs(RowSteps &rows);

} // namespace offload
