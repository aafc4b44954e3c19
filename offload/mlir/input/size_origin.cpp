//===- size_origin.cpp - Where the size of a dimension comes from ---------===//

#include "input/size_origin.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// A value of the same sizes that was there before; null where there is none.
Value sameBefore(Value shaped) {
  Operation *op = shaped.getDefiningOp();
  if (!op)
    return Value();
  if (auto made = dyn_cast<DestinationStyleOpInterface>(op))
    return made.getTiedOpOperand(cast<OpResult>(shaped))->get();
  if (isa<tensor::CastOp, memref::CastOp, bufferization::ToTensorOp, bufferization::ToBufferOp>(op))
    return op->getOperand(0);
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        return operand;
  return Value();
}

/// The size that a part of an array has been given for a dynamic dimension; null where it is a number.
Value sizeOfPart(OffsetSizeAndStrideOpInterface part, const llvm::SmallBitVector &dropped,
                 int64_t dimension) {
  for (auto [i, size] : llvm::enumerate(part.getMixedSizes()))
    if (!dropped.test(unsigned(i)) && dimension-- == 0)
      return dyn_cast<Value>(size);
  return Value();
}

/// The number that an allocation or a part has been given for a dynamic dimension; null of other operations.
Value givenSize(Value shaped, int64_t dimension) {
  Operation *op = shaped.getDefiningOp();
  if (auto part = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return sizeOfPart(part, part.getDroppedDims(), dimension);
  if (auto part = dyn_cast_or_null<memref::SubViewOp>(op))
    return sizeOfPart(part, part.getDroppedDims(), dimension);
  unsigned index = cast<ShapedType>(shaped.getType()).getDynamicDimIndex(unsigned(dimension));
  if (!isa_and_nonnull<tensor::EmptyOp, tensor::GenerateOp, bufferization::AllocTensorOp, memref::AllocOp,
                       memref::AllocaOp>(op) ||
      index >= op->getNumOperands() || !op->getOperand(index).getType().isIndex())
    return Value();
  return op->getOperand(index);
}

} // namespace

SizeOrigin originOf(Value shaped, int64_t dimension) {
  for (;;) {
    auto type = dyn_cast<ShapedType>(shaped.getType());
    if (!type || !type.hasRank())
      return {std::nullopt, shaped, dimension};
    if (!type.isDynamicDim(unsigned(dimension)))
      return {type.getDimSize(unsigned(dimension)), Value(), -1};
    if (Value before = sameBefore(shaped)) {
      shaped = before;
      continue;
    }
    Value size = givenSize(shaped, dimension);
    if (!size)
      return {std::nullopt, shaped, dimension};
    return originOf(OpFoldResult(size));
  }
}

SizeOrigin originOf(OpFoldResult number) {
  if (std::optional<int64_t> known = getConstantIntValue(number))
    return {known, Value(), -1};
  Value size = cast<Value>(number);
  Operation *asked = size.getDefiningOp();
  if (isa_and_nonnull<tensor::DimOp, memref::DimOp>(asked))
    if (std::optional<int64_t> dimension = getConstantIntValue(asked->getOperand(1)))
      return originOf(asked->getOperand(0), *dimension);
  return {std::nullopt, size, -1};
}

} // namespace offload
