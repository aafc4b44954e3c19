//===- assert_sizes.h - Sizes that are compared when the program runs -----===//
#pragma once

#include "input/size_origin.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace offload {

/// The size of a dimension of an operand.
struct OperandSize {
  unsigned operand;
  int64_t dimension;
  SizeOrigin origin;
};

/// Ends a program with an error in front of the operations whose sizes do not go together. Each two sizes are
/// compared once.
class AssertSizes {
public:
  /// `one` and `other` have to be the same.
  void same(mlir::Operation *op, const OperandSize &one, const OperandSize &other);

  /// A linear function of the loops, as the windows of a convolution have, has to stay within the dimension.
  /// `loops` tells how many steps each of them takes.
  void within(mlir::linalg::LinalgOp op, const OperandSize &size, mlir::AffineExpr index,
              llvm::ArrayRef<std::optional<OperandSize>> loops);

  /// What a tensor.extract_slice, tensor.insert_slice or memref.subview takes has to be within `whole`.
  static void part(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole);

private:
  using Key = std::pair<std::pair<void *, int64_t>, std::pair<void *, int64_t>>;
  bool isNew(mlir::Operation *op, const SizeOrigin &one, const SizeOrigin &other);

  llvm::DenseMap<Key, llvm::SmallVector<mlir::Operation *, 1>> compared; // in front of these
};

} // namespace offload
