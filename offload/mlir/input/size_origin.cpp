//===- size_origin.cpp - Where the size of a dimension comes from ---------===//

#include "input/size_origin.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

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
  if (auto copied = dyn_cast<bufferization::AllocTensorOp>(op))
    return copied.getCopy();
  if (OpTrait::hasElementwiseMappableTraits(op) && !choosesWhole(op))
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        return operand;
  return Value();
}

/// The number that an allocation or a part has been given for a dynamic dimension; null of other operations.
Value givenSize(Value shaped, int64_t dimension) {
  Operation *op = shaped.getDefiningOp();
  ValueRange sizes;
  if (auto part = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    sizes = part.getSizes();
  else if (auto part = dyn_cast_or_null<memref::SubViewOp>(op))
    sizes = part.getSizes();
  else if (isa_and_nonnull<tensor::EmptyOp, tensor::GenerateOp, bufferization::AllocTensorOp, memref::AllocOp,
                           memref::AllocaOp>(op))
    sizes = op->getOperands();
  // Dimensions that a part leaves out are of size one: those with an operand are there, in their order.
  unsigned index = cast<ShapedType>(shaped.getType()).getDynamicDimIndex(unsigned(dimension));
  return index < sizes.size() && sizes[index].getType().isIndex() ? sizes[index] : Value();
}

} // namespace

bool isOne(const SizeOrigin &a, const SizeOrigin &b) {
  if (a.known || b.known)
    return a.known == b.known;
  if (a.value == b.value && a.dimension == b.dimension)
    return true;
  if (a.dimension < 0 || b.dimension < 0)
    return false;
  return ValueBoundsConstraintSet::areEqual({a.value, a.dimension}, {b.value, b.dimension}).value_or(false);
}

bool choosesWhole(Operation *op) {
  auto choice = dyn_cast<arith::SelectOp>(op);
  return choice && !isa<ShapedType>(choice.getCondition().getType());
}

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
