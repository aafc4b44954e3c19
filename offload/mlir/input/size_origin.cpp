//===- size_origin.cpp - Where the size of a dimension comes from ---------===//

#include "input/size_origin.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// What a loop whose threads write parts of a tensor was given as one: for the tensor that it has inside, and
/// for the one that it makes.
Value givenToThreads(Value shaped) {
  if (auto result = dyn_cast<OpResult>(shaped)) {
    auto loop = dyn_cast<scf::ForallOp>(result.getOwner());
    return loop ? loop.getTiedOpOperand(result)->get() : Value();
  }
  auto inside = cast<BlockArgument>(shaped);
  auto loop = dyn_cast_or_null<scf::ForallOp>(inside.getOwner()->getParentOp());
  return loop ? loop.getTiedOpOperand(inside)->get() : Value(); // it is shaped, so no index
}

/// A value of the same sizes that was there before; null where there is none.
Value sameBefore(Value shaped) {
  if (Value given = givenToThreads(shaped))
    return given;
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

/// MLIR compares the least of numbers with what is greater alone.
static bool isPositive(OpFoldResult number) {
  using Set = ValueBoundsConstraintSet;
  OpFoldResult zero = Builder(number.getContext()).getIndexAttr(0);
  auto isAtLeastZero = [&](const Set::Variable &each) {
    return Set::compare(each, Set::ComparisonOperator::GE, zero);
  };
  Operation *op = isa<Value>(number) ? cast<Value>(number).getDefiningOp() : nullptr;
  if (auto least = dyn_cast_or_null<arith::MinSIOp>(op))
    return isPositive(least.getLhs()) && isPositive(least.getRhs());
  if (auto least = dyn_cast_or_null<affine::AffineMinOp>(op))
    return llvm::all_of(llvm::seq(least.getMap().getNumResults()), [&](unsigned i) {
      return isAtLeastZero(Set::Variable(least.getMap().getSubMap({i}), least.getOperands()));
    });
  return isAtLeastZero(number);
}

bool isWithin(OpFoldResult offset, OpFoldResult size, const SizeOrigin &whole) {
  using Set = ValueBoundsConstraintSet;
  using Variable = Set::Variable;
  MLIRContext *context = whole.known ? nullptr : whole.value.getContext();
  if (!context) // numbers fold
    return false;
  Builder b(context);
  AffineExpr end = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  Variable all = whole.dimension < 0 ? Variable(whole.value) : Variable(whole.value, whole.dimension);
  return isPositive(offset) && isPositive(size) &&
         Set::compare(Variable(AffineMap::get(2, 0, end), ArrayRef<Variable>{offset, size}),
                      Set::ComparisonOperator::LE, all);
}

bool choosesWhole(Operation *op) {
  auto choice = dyn_cast<arith::SelectOp>(op);
  return choice && !isa<ShapedType>(choice.getCondition().getType());
}

namespace {

/// Follows sizes. What branches and loops hand on is asked for once: loops come back to it, and chains of
/// branches would ask for each twice as often as for the next.
class Follow {
public:
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
      if (Value size = givenSize(shaped, dimension))
        return originOf(OpFoldResult(size));
      auto [place, isNew] =
          found.try_emplace({shaped, dimension}, SizeOrigin{std::nullopt, shaped, dimension});
      if (!isNew)
        return place->second;
      if (std::optional<SizeOrigin> origin = acrossBranches(shaped, dimension))
        return found[{shaped, dimension}] = *origin;
      return {std::nullopt, shaped, dimension};
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

private:
  /// Of what each step of a loop leaves as large as it was, and of what is as large whichever branch is
  /// taken.
  std::optional<SizeOrigin> acrossBranches(Value shaped, int64_t dimension) {
    auto result = dyn_cast<OpResult>(shaped);
    if (auto branch = dyn_cast_or_null<scf::IfOp>(shaped.getDefiningOp())) {
      SizeOrigin one = originOf(branch.thenYield().getOperand(result.getResultNumber()), dimension),
                 other = originOf(branch.elseYield().getOperand(result.getResultNumber()), dimension);
      bool isInside = one.value && branch->isAncestor(one.value.getParentBlock()->getParentOp());
      return isOne(one, other) && !isInside ? std::optional(one) : std::nullopt;
    }
    auto loop = dyn_cast_or_null<scf::ForOp>(result ? result.getOwner()
                                                    : cast<BlockArgument>(shaped).getOwner()->getParentOp());
    if (!loop)
      return std::nullopt;
    Value carried = result ? loop.getTiedLoopRegionIterArg(result) : shaped;
    found.try_emplace({carried, dimension}, SizeOrigin{std::nullopt, carried, dimension});
    SizeOrigin after = originOf(loop.getTiedLoopYieldedValue(cast<BlockArgument>(carried))->get(), dimension);
    SizeOrigin before = originOf(loop.getTiedLoopInit(cast<BlockArgument>(carried))->get(), dimension);
    bool isKept = (after.value == carried && after.dimension == dimension) || isOne(after, before);
    return isKept ? std::optional(before) : std::nullopt;
  }

  llvm::DenseMap<std::pair<Value, int64_t>, SizeOrigin> found; // while one is asked for: it is its own
};

} // namespace

SizeOrigin originOf(Value shaped, int64_t dimension) { return Follow().originOf(shaped, dimension); }

SizeOrigin originOf(OpFoldResult number) { return Follow().originOf(number); }

} // namespace offload
