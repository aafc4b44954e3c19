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
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int kMostSteps = 8; // of arithmetic between two sizes that are compared

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

/// The number that an allocation, a part or another view has been given for a dynamic dimension; null of
/// other operations.
Value givenSize(Value shaped, int64_t dimension) {
  Operation *op = shaped.getDefiningOp();
  ValueRange sizes;
  if (auto part = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    sizes = part.getSizes();
  else if (auto part = dyn_cast_or_null<memref::SubViewOp>(op))
    sizes = part.getSizes();
  else if (auto view = dyn_cast_or_null<memref::ViewOp>(op))
    sizes = view.getSizes();
  else if (auto view = dyn_cast_or_null<memref::ReinterpretCastOp>(op))
    sizes = view.getSizes();
  else if (isa_and_nonnull<tensor::EmptyOp, tensor::GenerateOp, bufferization::AllocTensorOp, memref::AllocOp,
                           memref::AllocaOp>(op))
    sizes = op->getOperands();
  // Dimensions that a part leaves out are of size one: those with an operand are there, in their order.
  unsigned index = cast<ShapedType>(shaped.getType()).getDynamicDimIndex(unsigned(dimension));
  return index < sizes.size() && sizes[index].getType().isIndex() ? sizes[index] : Value();
}

} // namespace

/// MLIR compares the least of numbers with what is greater alone.
bool isPositive(OpFoldResult number) {
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
  if (isa<Attribute>(offset) && isa<Attribute>(size)) // numbers fold
    return false;
  Builder b(offset.getContext());
  AffineExpr end = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  Variable all = whole.known           ? Variable(OpFoldResult(b.getIndexAttr(*whole.known)))
                 : whole.dimension < 0 ? Variable(whole.value)
                                       : Variable(whole.value, whole.dimension);
  return isPositive(offset) && isPositive(size) &&
         Set::compare(Variable(AffineMap::get(2, 0, end), ArrayRef<Variable>{offset, size}),
                      Set::ComparisonOperator::LE, all);
}

bool choosesWhole(Operation *op) {
  auto choice = dyn_cast<arith::SelectOp>(op);
  return choice && !isa<ShapedType>(choice.getCondition().getType());
}

namespace {

/// What a loop or a branch hands on as that value: nothing where it is none of theirs. A loop's argument is
/// what the loop begins with or what an iteration hands on.
SmallVector<Value, 2> handedOn(Value shaped) {
  auto argument = dyn_cast<BlockArgument>(shaped);
  Operation *op = argument ? argument.getOwner()->getParentOp() : shaped.getDefiningOp();
  unsigned i = argument ? argument.getArgNumber() : cast<OpResult>(shaped).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (!argument)
      return {loop.getRegionIterArg(i)};
    return {loop.getInitArgs()[i - 1], loop.getYieldedValues()[i - 1]};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    if (argument && argument.getOwner() == loop.getBeforeBody())
      return {loop.getInits()[i], loop.getYieldOp().getOperand(i)};
    return {loop.getConditionOp().getArgs()[i]};
  }
  if (auto loop = dyn_cast<scf::ForallOp>(op))
    return {loop.getOutputs()[argument ? i - unsigned(loop.getRank()) : i]};
  if (argument)
    return {};
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return {branch.thenYield().getOperand(i), branch.elseYield().getOperand(i)};
  if (auto choice = dyn_cast<arith::SelectOp>(op); choice && choosesWhole(op))
    return {choice.getTrueValue(), choice.getFalseValue()};
  return {};
}

/// Follows sizes. What a loop begins with is taken to be what all its iterations have, and is, if from that
/// follows that each one hands it on. What flows together is asked for once: chains of branches would ask for
/// each twice as often as for the next.
class Sizes {
public:
  /// `seen`: only what can be seen from where the size is asked for.
  explicit Sizes(bool seen) : seen(seen) {}

  SizeOrigin of(Value shaped, int64_t dimension) {
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
      return size ? of(OpFoldResult(size)) : throughFlow(shaped, dimension);
    }
  }

  SizeOrigin of(OpFoldResult number) {
    if (std::optional<int64_t> known = getConstantIntValue(number))
      return {known, Value(), -1};
    Value size = cast<Value>(number);
    Operation *asked = size.getDefiningOp();
    if (isa_and_nonnull<tensor::DimOp, memref::DimOp>(asked))
      if (std::optional<int64_t> dimension = getConstantIntValue(asked->getOperand(1)))
        return of(asked->getOperand(0), *dimension);
    return {std::nullopt, size, -1};
  }

  bool areOne(const SizeOrigin &a, const SizeOrigin &b, int steps = 0) {
    if (isOne(a, b))
      return true;
    if (a.known || b.known || a.dimension >= 0 || b.dimension >= 0)
      return false;
    Operation *one = a.value.getDefiningOp(), *other = b.value.getDefiningOp();
    if (one && other && steps < kMostSteps && one->getName() == other->getName() && isPure(one) &&
        !one->getNumRegions() && one->getNumResults() == 1 &&
        one->getAttrDictionary() == other->getAttrDictionary() &&
        one->getNumOperands() == other->getNumOperands() &&
        llvm::all_of(
            llvm::zip_equal(one->getOperands(), other->getOperands()),
            [&](auto pair) {
              auto [operand, its] = pair;
              return operand == its || (operand.getType().isIndex() && its.getType().isIndex() &&
                                        areOne(of(OpFoldResult(operand)), of(OpFoldResult(its)), steps + 1));
            }))
      return true;
    return ValueBoundsConstraintSet::areEqual({a.value}, {b.value}).value_or(false);
  }

private:
  using Key = std::pair<Value, int64_t>;

  SizeOrigin throughFlow(Value shaped, int64_t dimension) {
    SizeOrigin itself{std::nullopt, shaped, dimension};
    if (auto known = found.find({shaped, dimension}); known != found.end())
      return known->second;
    SmallVector<Value, 2> sources = handedOn(shaped);
    SizeOrigin origin = itself;
    if (sources.size() == 1)
      origin = of(sources[0], dimension);
    else if (!sources.empty() && isa<BlockArgument>(shaped))
      origin = ofAll(sources[0], sources[1], itself);
    else if (!sources.empty())
      origin = ifOne(of(sources[0], dimension), sources[1], itself);
    if (seen && origin.value && !origin.value.getParentRegion()->isAncestor(shaped.getParentRegion()))
      origin = itself;
    keep({shaped, dimension}, origin);
    return origin;
  }

  SizeOrigin ifOne(const SizeOrigin &one, Value other, const SizeOrigin &itself) {
    return areOne(one, of(other, itself.dimension)) ? one : itself;
  }

  /// What all iterations have that begin with `first`, and hand on `next`.
  SizeOrigin ofAll(Value first, Value next, const SizeOrigin &itself) {
    SizeOrigin begin = of(first, itself.dimension);
    size_t before = order.size();
    keep({itself.value, itself.dimension}, begin); // to be shown
    SizeOrigin all = ifOne(begin, next, itself);
    if (all.value != itself.value) // is shown, and what follows from it
      return all;
    for (const Key &key : ArrayRef(order).drop_front(before)) // what follows from it alone
      if (const SizeOrigin &origin = found[key]; origin.value != key.first || origin.dimension != key.second)
        found.erase(key);
    order.resize(before);
    return all;
  }

  void keep(const Key &key, const SizeOrigin &origin) {
    found[key] = origin;
    order.push_back(key);
  }

  bool seen;
  llvm::DenseMap<Key, SizeOrigin> found;
  SmallVector<Key> order; // in which they have been found
};

/// Adds all that may be where the size comes from.
void addOrigins(Value shaped, int64_t dimension, llvm::DenseSet<std::pair<Value, int64_t>> &seen,
                SmallVectorImpl<SizeOrigin> &origins) {
  SizeOrigin origin = carriedOriginOf(shaped, dimension);
  SmallVector<Value, 2> sources;
  if (!origin.known && origin.dimension >= 0)
    sources = handedOn(origin.value);
  if (sources.empty())
    origins.push_back(origin);
  else if (seen.insert({origin.value, origin.dimension}).second)
    for (Value source : sources)
      addOrigins(source, origin.dimension, seen, origins);
}

} // namespace

bool isOne(const SizeOrigin &a, const SizeOrigin &b) {
  if (a.known || b.known)
    return a.known == b.known;
  if (a.value == b.value && a.dimension == b.dimension)
    return true;
  // What flows together has been followed to here; MLIR would ask for it once for each way that leads there.
  if (a.dimension < 0 || b.dimension < 0 || !handedOn(a.value).empty() || !handedOn(b.value).empty())
    return false;
  return ValueBoundsConstraintSet::areEqual({a.value, a.dimension}, {b.value, b.dimension}).value_or(false);
}

SizeOrigin originOf(Value shaped, int64_t dimension) { return Sizes(true).of(shaped, dimension); }

SizeOrigin originOf(OpFoldResult number) { return Sizes(true).of(number); }

SizeOrigin carriedOriginOf(Value shaped, int64_t dimension) { return Sizes(false).of(shaped, dimension); }

SizeOrigin carriedOriginOf(OpFoldResult number) { return Sizes(false).of(number); }

SmallVector<SizeOrigin> carriedOriginsOf(Value shaped, int64_t dimension) {
  llvm::DenseSet<std::pair<Value, int64_t>> seen; // rows and columns may change places
  SmallVector<SizeOrigin> origins;
  addOrigins(shaped, dimension, seen, origins);
  return origins;
}

bool areOne(const SizeOrigin &one, const SizeOrigin &other) { return Sizes(false).areOne(one, other); }

bool haveOneSize(Value a, Value b) {
  Sizes sizes(false);
  int64_t rank = cast<ShapedType>(a.getType()).getRank();
  return llvm::all_of(llvm::seq<int64_t>(0, rank),
                      [&](int64_t i) { return sizes.areOne(sizes.of(a, i), sizes.of(b, i)); });
}

} // namespace offload
