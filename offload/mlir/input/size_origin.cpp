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

/// The number that an allocation has been given for a dynamic dimension; null of other operations.
Value givenSize(Value shaped, int64_t dimension) {
  Operation *op = shaped.getDefiningOp();
  unsigned index = cast<ShapedType>(shaped.getType()).getDynamicDimIndex(unsigned(dimension));
  if (!isa_and_nonnull<tensor::EmptyOp, bufferization::AllocTensorOp, memref::AllocOp, memref::AllocaOp>(
          op) ||
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
    if (std::optional<int64_t> known = getConstantIntValue(size))
      return {known, Value(), -1};
    Operation *asked = size.getDefiningOp();
    std::optional<int64_t> other = isa_and_nonnull<tensor::DimOp, memref::DimOp>(asked)
                                       ? getConstantIntValue(asked->getOperand(1))
                                       : std::nullopt;
    if (!other)
      return {std::nullopt, size, -1};
    shaped = asked->getOperand(0);
    dimension = *other;
  }
}

} // namespace offload
