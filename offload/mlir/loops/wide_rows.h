//===- wide_rows.h - Rows of memory, several neighbours at once -----------===//
#pragma once

#include "loops/row_steps.h"
#include "loops/row_threads.h"

namespace offload {

/// How the threads of a launch go through rows where each takes elements that are neighbours in memory.
struct WideRows {
  int64_t width;  // elements that are taken at once
  int64_t lanes;  // of a row
  bool areBlocks; // whether these are all threads of a block, whose rows come one after another
  int64_t least;  // elements of a row that is long enough
  std::optional<int64_t> pieces; // of `width` elements that a lane has at most, and keeps; none: any number

  /// None where elements have no size that loads have, or are known to lie where these cannot load, and where
  /// a row is too short. `length` is that of a row, or ShapedType::kDynamic.
  static std::optional<WideRows> of(const RowSteps &rows, int64_t length, const RowThreads &threads);

  /// Whether the rows of all memory lie where wide loads find them, and have enough elements.
  mlir::Value fit(mlir::OpBuilder &b, mlir::Location loc, const RowSteps &rows, mlir::Value length) const;

  /// Elements from this place on, and back to it.
  llvm::SmallVector<mlir::Value> load(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory,
                                      mlir::ValueRange place) const;
  void store(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange values, mlir::Value memory,
             mlir::ValueRange place) const;
};

} // namespace offload
