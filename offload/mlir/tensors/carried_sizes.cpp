//===- carried_sizes.cpp - Sizes of what loops and branches hand on -------===//
//
// MLIR's ValueBounds does not look into while loops, and of other loops and of branches only at what is
// handed on as it came. Here what a loop begins with is taken to be what all its iterations have, and is, if
// from that follows that each one hands it on.
//
//===----------------------------------------------------------------------===//

#include "tensors/carried_sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int kMostSteps = 8; // of arithmetic between two sizes that are compared

/// The size that a view of other memory has been given for a dynamic dimension; null of other operations.
Value givenSize(Value memory, int64_t dimension) {
  if (auto view = memory.getDefiningOp<memref::ViewOp>())
    return view.getSizes()[view.getType().getDynamicDimIndex(unsigned(dimension))];
  if (auto view = memory.getDefiningOp<memref::ReinterpretCastOp>())
    return dyn_cast<Value>(view.getMixedSizes()[size_t(dimension)]);
  return Value();
}

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

class Sizes {
public:
  SizeOrigin of(Value shaped, int64_t dimension) { return throughFlow(originOf(shaped, dimension)); }
  SizeOrigin of(OpFoldResult number) { return throughFlow(originOf(number)); }

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
  SizeOrigin throughFlow(const SizeOrigin &origin) {
    if (origin.known || origin.dimension < 0)
      return origin;
    if (Value given = givenSize(origin.value, origin.dimension))
      return of(OpFoldResult(given));
    SmallVector<Value, 2> sources = handedOn(origin.value);
    if (sources.empty())
      return origin;
    if (sources.size() == 1)
      return of(sources[0], origin.dimension);
    if (isa<BlockArgument>(origin.value))
      return ofAll(sources[0], sources[1], origin);
    return ifOne(of(sources[0], origin.dimension), sources[1], origin);
  }

  SizeOrigin ifOne(const SizeOrigin &one, Value other, const SizeOrigin &itself) {
    return areOne(one, of(other, itself.dimension)) ? one : itself;
  }

  /// What all iterations have that begin with `first`, and hand on `next`.
  SizeOrigin ofAll(Value first, Value next, const SizeOrigin &itself) {
    std::pair<Value, int64_t> key(itself.value, itself.dimension);
    if (auto known = taken.find(key); known != taken.end())
      return known->second;
    SizeOrigin begin = of(first, itself.dimension);
    taken.insert({key, begin});
    SizeOrigin all = ifOne(begin, next, itself);
    taken.erase(key);
    return all;
  }

  llvm::DenseMap<std::pair<Value, int64_t>, SizeOrigin> taken; // for what all iterations have, to be shown
};

/// Adds all that may be where the size comes from.
void addOrigins(Value shaped, int64_t dimension, llvm::SmallPtrSetImpl<Value> &seen,
                SmallVectorImpl<SizeOrigin> &origins) {
  SizeOrigin origin = carriedOriginOf(shaped, dimension);
  SmallVector<Value, 2> sources;
  if (!origin.known && origin.dimension >= 0)
    sources = handedOn(origin.value);
  if (sources.empty())
    origins.push_back(origin);
  else if (seen.insert(origin.value).second)
    for (Value source : sources)
      addOrigins(source, origin.dimension, seen, origins);
}

} // namespace

SmallVector<SizeOrigin> carriedOriginsOf(Value shaped, int64_t dimension) {
  llvm::SmallPtrSet<Value, 8> seen;
  SmallVector<SizeOrigin> origins;
  addOrigins(shaped, dimension, seen, origins);
  return origins;
}

SizeOrigin carriedOriginOf(Value shaped, int64_t dimension) { return Sizes().of(shaped, dimension); }

SizeOrigin carriedOriginOf(OpFoldResult number) { return Sizes().of(number); }

bool haveOneSize(Value a, Value b) {
  Sizes sizes;
  int64_t rank = cast<ShapedType>(a.getType()).getRank();
  return llvm::all_of(llvm::seq<int64_t>(0, rank),
                      [&](int64_t i) { return sizes.areOne(sizes.of(a, i), sizes.of(b, i)); });
}

} // namespace offload
