//===- sparse_pattern.h - What the patterns of sparse operations share ------===//
//
// Sparse operations call the functions that upstream's gpu-to-llvm calls, with the same arguments, but for:
//
//  * A memref is passed as the address of its first element, not of its allocation.
//  * What upstream decides by the operation that made a handle (2:4 or not, vector or matrix) is decided here
//    the same way where that operation is seen. Where it is not, because the handle is an argument of a
//    function or a block, the plain function is called: the runtime knows what a handle stands for.
//  * Handles of 2:4 matrices are memory of the function that makes them, in its entry block; a handle that
//    leaves the place where it was made is refused, since a loop would reuse its memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "host/lowering.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"

namespace offload {

/// The ABI's codes of types (cudaDataType_t, cusparseIndexType_t), or an error at the operation.
mlir::FailureOr<int32_t> dataTypeOf(mlir::Operation *op, mlir::Value memref);
mlir::FailureOr<int32_t> indexTypeOf(mlir::Operation *op, mlir::Value memref);
mlir::FailureOr<int32_t> computeTypeOf(mlir::Operation *op, mlir::Type type);

/// Fails, with an error, where a memref among the operands has gaps.
mlir::LogicalResult checkBuffers(mlir::Operation *op);

enum class Made { Plain, TwoToFour, Unseen };
/// What made a sparse matrix.
Made madeAs(mlir::Value matrix);

/// The pattern of one operation: checks and arguments are the operation's own, the rest is here.
template <typename Op> struct SparsePattern : public HostPattern<Op> {
  using HostPattern<Op>::HostPattern;
  using Adaptor = typename Op::Adaptor;

  mlir::Type pointer() const { return pointerType(this->getContext()); }

  static mlir::Value number(mlir::OpBuilder &b, Op op, int64_t value) {
    return constant(b, op.getLoc(), b.getI32Type(), value);
  }

  /// The address of a memref's first element.
  mlir::Value address(mlir::OpBuilder &b, Op op, mlir::Value memref, mlir::Value descriptor) const {
    mlir::Value first = mlir::MemRefDescriptor(descriptor)
                            .bufferPtr(b, op.getLoc(), *this->getTypeConverter(),
                                       llvm::cast<mlir::MemRefType>(memref.getType()));
    return first.getType() == pointer()
               ? first
               : mlir::LLVM::AddrSpaceCastOp::create(b, op.getLoc(), pointer(), first);
  }

  /// Space for that many sizes, and their values once a function has written them.
  static mlir::Value sizes(mlir::OpBuilder &b, Op op, int64_t count) {
    return entryAlloca(b, op, b.getI64Type(), count);
  }
  mlir::Value place(mlir::OpBuilder &b, Op op, mlir::Value sizes, int32_t at) const {
    return mlir::LLVM::GEPOp::create(b, op.getLoc(), pointer(), b.getI64Type(), sizes,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{at});
  }
  llvm::SmallVector<mlir::Value> loadSizes(mlir::OpBuilder &b, Op op, mlir::Value sizes,
                                           int32_t count) const {
    llvm::SmallVector<mlir::Value> values;
    for (int32_t i = 0; i < count; ++i)
      values.push_back(mlir::LLVM::LoadOp::create(b, op.getLoc(), b.getI64Type(), place(b, op, sizes, i)));
    return values;
  }

  /// Calls with the stream as the last argument and replaces the operation by the call's result, if any.
  void call(mlir::ConversionPatternRewriter &b, Op op, Adaptor adaptor, llvm::StringRef name,
            mlir::Type result, llvm::SmallVector<mlir::Value> arguments) const {
    Stream stream = HostPattern<Op>::streamOf(b, op, adaptor);
    arguments.push_back(stream.value);
    mlir::Value value = callRuntime(b, op, name, result, arguments);
    waitFor(b, op, stream);
    HostPattern<Op>::finish(b, op, stream, value ? mlir::ValueRange(value) : mlir::ValueRange());
  }
};

} // namespace offload
