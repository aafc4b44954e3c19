//===- row_threads.h - Threads that share out rows of memory --------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace offload {

inline constexpr int64_t kRowLanes = 32; // that work on a row together, on every target
inline constexpr int64_t kRowSteps = 64; // of a row, two for each lane: a thread alone is as fast with fewer
inline constexpr int64_t kRowsOfBlock = 4;
inline constexpr int64_t kLongRow = 2048;     // steps of a row that has a block
inline constexpr int64_t kLongRowLanes = 256; // of that block
inline constexpr int64_t kManyRows = 1024;    // fill a device by a subgroup each

/// Types that lanes hand on to each other.
bool canBeHandedOn(mlir::Type type);

/// One thread of a launch, whose threads along x work on a row together.
struct RowThreads {
  mlir::gpu::LaunchOp launch;
  mlir::Value lane, row, exists; // of the row; there may be none left for the last of a block
  int64_t lanes;
  int64_t together; // rows of a block

  /// What all lanes of a row have as one value, which each of them gets.
  mlir::Value joined(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                     llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> join);
};

/// Launches a subgroup for each row, or a block where there are few of them and these have so many steps at
/// least, as can be seen now or when it runs. `write` writes what the threads do, in front of the end of the
/// launch's body.
void launchRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value rows, mlir::Value steps, int64_t isLong,
                llvm::function_ref<void(RowThreads)> write);

/// A subgroup for each row, in any case.
RowThreads launchSubgroups(mlir::OpBuilder &b, mlir::Location loc, mlir::Value rows);

/// Writes what is done where a number is so large at least, and what is done otherwise; where that is known,
/// one of them.
void whereLeast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value number, int64_t least,
                llvm::function_ref<void()> enough, llvm::function_ref<void()> otherwise);

mlir::Value memoryOfBlock(mlir::gpu::LaunchOp launch, llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// The numbers of a row in dimensions of these sizes, which are numbered as loops are nested.
llvm::SmallVector<mlir::Value> placeOfRow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value row,
                                          llvm::ArrayRef<mlir::Value> sizes);

} // namespace offload
