//===- assert_sizes.h - Sizes that are compared when the program runs -----===//
#pragma once

#include "input/size_origin.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

namespace offload {

/// The size of a dimension of an operand.
struct OperandSize {
  unsigned operand;
  int64_t dimension;
  SizeOrigin origin;
};

/// Sets the first place in the operation's block that has all values and behind which nothing but `op` ends
/// the program or is seen from outside of it.
void moveForward(mlir::OpBuilder &b, mlir::Operation *op, llvm::ArrayRef<mlir::Value> values);

/// Ends a program with an error in front of the operations whose sizes do not go together. Each two sizes are
/// compared once.
class AssertSizes {
public:
  /// `isOfThreads`: of a function that threads call.
  explicit AssertSizes(bool isOfThreads) : isOfThreads(isOfThreads) {}

  /// Have errors been told, of what is wrong whatever it is called with?
  bool isWrong = false;

  /// Assertions that threads come to.
  llvm::SmallVector<mlir::cf::AssertOp> ofThreads;

  /// `one` and `other` have to be the same.
  void same(mlir::Operation *op, const OperandSize &one, const OperandSize &other);

  /// A linear function of the loops, as the windows of a convolution have, has to stay within the dimension.
  /// `loops` tells how many steps each of them takes.
  void within(mlir::linalg::LinalgOp op, const OperandSize &size, mlir::AffineExpr index,
              llvm::ArrayRef<std::optional<OperandSize>> loops);

  /// `whole` has to fit into so many tiles of that size, or to fill them.
  void tiled(mlir::Operation *op, const OperandSize &whole, const OperandSize &tiles, mlir::OpFoldResult size,
             bool exactly);

  /// A size has to be that which the operation says, the product of `factors`, for the reason `why`. A view
  /// that is used in other blocks alone need not fit where they do not run.
  void said(mlir::Operation *op, const OperandSize &size, llvm::ArrayRef<mlir::OpFoldResult> factors,
            const llvm::Twine &why);

  /// What a tensor.extract_slice, an insertion or a memref.subview takes has to be within `whole`.
  void part(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole);

  /// What threads insert has to be as large as its place.
  void inserted(mlir::OffsetSizeAndStrideOpInterface op, mlir::OpOperand &source,
                const llvm::SmallBitVector &dropped);

  /// What is padded has to become as large as its type says, and by no less than nothing.
  void padded(mlir::tensor::PadOp op);

  /// What is put together has to become as large as its type says.
  void joined(mlir::tensor::ConcatOp op);

  /// What memory is viewed as has to fit into its bytes.
  void viewed(mlir::memref::ViewOp op);

  /// Memory, or a tensor, of another shape has as many elements as before.
  void reshaped(mlir::Operation *op, mlir::Value source, mlir::Value shape);

  /// What has no rank in its type has to have that of the type that it is cast to.
  void ranked(mlir::Operation *cast);

  /// Memory has to be laid out as the type says that it is cast to. Steps that nobody takes may be any.
  void laidOut(mlir::memref::CastOp op);

  /// A kernel's blocks and grid have to be those that it says, which its code counts on. What is constant
  /// offload-check-input compares; of no blocks nothing runs.
  void launched(mlir::gpu::LaunchFuncOp op);

private:
  void dimensionOfPart(mlir::OffsetSizeAndStrideOpInterface op, const SizeOrigin &all, int64_t dimension,
                       mlir::Operation *place);
  /// Asserts it of two sizes, `unless` something else holds (null: nothing does); what is known not to hold
  /// is an error at an operation that always runs.
  void require(mlir::OpBuilder &b, mlir::Operation *op, mlir::arith::CmpIPredicate how, mlir::Value one,
               mlir::Value other, mlir::Value unless, const llvm::Twine &message);

  using Key = std::pair<std::pair<void *, int64_t>, std::pair<void *, int64_t>>;
  bool isNew(mlir::Operation *op, const SizeOrigin &one, const SizeOrigin &other);

  bool isOfThreads;
  llvm::DenseMap<Key, llvm::SmallVector<mlir::Operation *, 1>> compared; // in front of these
};

} // namespace offload
