//===- row_threads.h - Threads that share out rows of memory --------------===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace offload {

inline constexpr int64_t kRowLanes = 32; // that work on a row together, on every target
inline constexpr int64_t kRowSteps = 64; // of a row, two for each lane: a thread alone is as fast with fewer
inline constexpr int64_t kRowsOfBlock = 4;

inline constexpr int64_t kBlockLanes = 256; // of a block that has one long row
inline constexpr int64_t kLongRow = 2048;   // steps
inline constexpr int64_t kManyRows = 1024;  // fill a device by a subgroup each

/// Types that lanes hand on to each other.
bool canBeHandedOn(mlir::Type type);

/// One thread of a launch, whose threads along x work on a row together.
struct RowThreads {
  mlir::gpu::LaunchOp launch;
  mlir::Value lane, row, exists; // of the row; there may be none left for the last of a block
};

/// Launches `lanes` threads for each row, `together` rows in a block. What the threads do goes in front of
/// the end of the launch's body.
RowThreads launchRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value rows, int64_t lanes,
                      int64_t together);

/// The numbers of a row in dimensions of these sizes, which are numbered as loops are nested.
llvm::SmallVector<mlir::Value> placeOfRow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value row,
                                          llvm::ArrayRef<mlir::Value> sizes);

/// Makes what the threads of a row have of each value one, which each of them gets: kRowLanes threads, or
/// those of a block, which has kBlockLanes. `join` is told the number of the value.
void acrossRow(mlir::gpu::LaunchOp launch, mlir::OpBuilder &b, mlir::Location loc,
               llvm::MutableArrayRef<mlir::Value> values, mlir::Value lane, bool isBlock,
               llvm::function_ref<mlir::Value(unsigned, mlir::Value, mlir::Value)> join);

/// What all lanes of a row have as one value, which each of them gets.
mlir::Value acrossLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> join);

} // namespace offload
