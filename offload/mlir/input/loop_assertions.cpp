//===- loop_assertions.cpp - What steps of loops ask for, in front of them ===//
//
// Threads tell of a size that does not fit only when others have written already, and each has to compare it.
// What is asserted of a step of a loop is asserted in front of the loop instead: of its first step and of its
// last one, as what rises or falls with a loop's index, like the places of parts, has its ends there. Steps
// that run if any do are all that is asserted of, so nothing right is refused; what comes to its end between
// them is not found. What depends on memory that threads read, or on branches, stays with them, in front of
// the loops that each thread has inside of that.
//
//===----------------------------------------------------------------------===//

#include "input/loop_assertions.h"
#include "input/assert_sizes.h"
#include "loops/parallel_loops.h"
#include "names.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

constexpr unsigned kManyIndices = 3; // whose first and last steps are put together in each way

/// One dimension of a loop.
struct Range {
  Value index;
  OpFoldResult from, to, step;
};

/// The bound of an affine loop; none where it is computed.
std::optional<OpFoldResult> boundOf(AffineMap map, ValueRange operands) {
  if (map.getNumResults() != 1)
    return std::nullopt;
  AffineExpr bound = map.getResult(0);
  if (auto number = dyn_cast<AffineConstantExpr>(bound))
    return Builder(map.getContext()).getIndexAttr(number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(bound))
    return operands[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(bound))
    return operands[map.getNumDims() + symbol.getPosition()];
  return std::nullopt;
}

bool addRange(SmallVector<Range> &ranges, Value index, std::optional<OpFoldResult> from,
              std::optional<OpFoldResult> to, int64_t step) {
  if (from && to)
    ranges.push_back({index, *from, *to, Builder(index.getContext()).getIndexAttr(step)});
  return from && to;
}

/// Of each dimension of a loop; none where they are not all known.
std::optional<SmallVector<Range>> rangesOf(Operation *op) {
  SmallVector<Range> ranges;
  Builder b(op->getContext());
  if (auto loop = dyn_cast<affine::AffineForOp>(op)) {
    bool isKnown = addRange(
        ranges, loop.getInductionVar(), boundOf(loop.getLowerBoundMap(), loop.getLowerBoundOperands()),
        boundOf(loop.getUpperBoundMap(), loop.getUpperBoundOperands()), loop.getStepAsInt());
    return isKnown ? std::optional(ranges) : std::nullopt;
  }
  if (auto loop = dyn_cast<affine::AffineParallelOp>(op)) {
    for (auto [i, index, step] : llvm::enumerate(loop.getIVs(), loop.getSteps()))
      if (!addRange(ranges, index, boundOf(loop.getLowerBoundMap(unsigned(i)), loop.getLowerBoundsOperands()),
                    boundOf(loop.getUpperBoundMap(unsigned(i)), loop.getUpperBoundsOperands()), step))
        return std::nullopt;
    return ranges;
  }
  if (auto made = dyn_cast<tensor::GenerateOp>(op)) {
    SmallVector<OpFoldResult> sizes = getMixedValues(made.getType().getShape(), made.getDynamicExtents(), b);
    for (auto [index, size] : llvm::zip_equal(made.getBody().getArguments(), sizes))
      ranges.push_back({index, b.getIndexAttr(0), size, b.getIndexAttr(1)});
    return ranges;
  }
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  auto counted = dyn_cast<scf::ForOp>(op);
  if (!loop || (counted && counted.getUnsignedCmp()))
    return std::nullopt;
  std::optional<SmallVector<Value>> indices = loop.getLoopInductionVars();
  auto from = loop.getLoopLowerBounds(), to = loop.getLoopUpperBounds(), steps = loop.getLoopSteps();
  if (!indices || !from || !to || !steps)
    return std::nullopt;
  for (auto [index, first, end, step] : llvm::zip_equal(*indices, *from, *to, *steps)) {
    if (getConstantIntValue(step).value_or(1) <= 0)
      return std::nullopt;
    ranges.push_back({index, first, end, step});
  }
  return ranges;
}

/// The operands that it divides by. Nothing is divided by the size of the first digit.
MutableArrayRef<OpOperand> divisorsOf(Operation *op) {
  if (auto digits = dyn_cast<affine::AffineDelinearizeIndexOp>(op)) {
    bool hasFirst = digits.hasOuterBound() && ShapedType::isDynamic(digits.getStaticBasis().front());
    return op->getOpOperands().drop_front(hasFirst ? 2 : 1);
  }
  bool divides = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp,
                     arith::CeilDivUIOp, arith::FloorDivSIOp, index::DivSOp, index::DivUOp, index::RemSOp,
                     index::RemUOp, index::CeilDivSOp, index::CeilDivUOp, index::FloorDivSOp>(op);
  return divides ? op->getOpOperands().drop_front() : MutableArrayRef<OpOperand>();
}

/// Also where the loops have no steps. A size of zero divides nothing, an affine map divides by any symbol,
/// and a tensor without elements has none that could be read.
bool mayRunAnyway(Operation *op) {
  if (!divisorsOf(op).empty() || isa<affine::AffineDelinearizeIndexOp>(op))
    return true;
  AffineMap map;
  if (auto applied = dyn_cast<affine::AffineApplyOp>(op))
    map = applied.getAffineMap();
  else if (auto least = dyn_cast<affine::AffineMinOp>(op))
    map = least.getAffineMap();
  else if (auto most = dyn_cast<affine::AffineMaxOp>(op))
    map = most.getAffineMap();
  else if (!isa<tensor::DimOp, memref::DimOp, affine::AffineLinearizeIndexOp>(op) &&
           !isa_and_nonnull<arith::ArithDialect, index::IndexDialect>(op->getDialect()))
    return false;
  bool isPlain = !map || llvm::all_of(map.getResults(), [](AffineExpr each) { return each.isPureAffine(); });
  return isPure(op) && isPlain;
}

/// Loops around an assertion, and what it is made of in front of them.
class LoopsAround {
public:
  LoopsAround(cf::AssertOp op, Operation *outermost) : outermost(outermost) {
    for (Operation *around = op; around != outermost && isKnown;) {
      around = around->getParentOp();
      std::optional<SmallVector<Range>> found = rangesOf(around);
      isKnown = found.has_value();
      ranges.append(isKnown ? llvm::to_vector(llvm::reverse(*found)) : SmallVector<Range>());
    }
    std::reverse(ranges.begin(), ranges.end());
    isKnown = isKnown && canCompute(op.getArg()) && llvm::all_of(ranges, [&](const Range &range) {
                return llvm::all_of(ArrayRef({range.from, range.to, range.step}), [&](OpFoldResult end) {
                  return isa<Attribute>(end) || canCompute(cast<Value>(end));
                });
              });
  }

  Operation *outermost;
  SmallVector<Range> ranges; // the outermost one first
  bool isKnown = true;
  llvm::SmallSetVector<Value, 4> indices; // that it is made of
  SmallVector<Value> leaves;              // and what is there in front of the loops

  /// The value in front of the loops, with what `made` has for their indices.
  Value inFront(OpBuilder &b, Value value, IRMapping &made) {
    Operation *op = value.getDefiningOp();
    if (made.contains(value) || isOutside(value))
      return made.lookupOrDefault(value);
    for (Value operand : op->getOperands())
      (void)inFront(b, operand, made);
    SmallVector<std::pair<unsigned, Value>> divisors;
    for (OpOperand &divisor : divisorsOf(op))
      divisors.push_back(
          {divisor.getOperandNumber(), aboveZero(b, op->getLoc(), made.lookupOrDefault(divisor.get()))});
    Operation *copy = b.clone(*op, made);
    for (auto [i, divisor] : divisors)
      copy->setOperand(i, divisor);
    SmallVector<Value> folded;
    if (succeeded(b.tryFold(copy, folded)) && !folded.empty()) {
      made.map(op->getResults(), folded);
      copy->erase();
    }
    return made.lookup(value);
  }

  Value noSteps; // of the loops, or none that can be told

  /// A divisor, or a step, which may be anything where no step divides by it, or there is none.
  Value aboveZero(OpBuilder &b, Location loc, Value divisor) {
    auto number = [&](int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(divisor.getType(), n));
    };
    Value isNot = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, divisor, number(0));
    noSteps = b.createOrFold<arith::OrIOp>(loc, noSteps, isNot);
    return b.createOrFold<arith::SelectOp>(loc, isNot, number(1), divisor);
  }

private:
  bool isOutside(Value value) { return !outermost->isAncestor(value.getParentBlock()->getParentOp()); }

  /// Of numbers, by operations that may run where the loops do not.
  bool canCompute(Value value) {
    if (isOutside(value))
      return leaves.push_back(value), true;
    if (llvm::any_of(ranges, [&](const Range &range) { return range.index == value; }))
      return indices.insert(value), true;
    if (computed.contains(value)) // numbers that are each made of the one before in two ways
      return true;
    Operation *op = value.getDefiningOp();
    bool isComputed = op && value.getType().isIntOrIndex() && !op->getNumRegions() && mayRunAnyway(op) &&
                      llvm::all_of(op->getOperands(), [&](Value operand) { return canCompute(operand); });
    if (isComputed)
      computed.insert(value);
    return isComputed;
  }

  llvm::DenseSet<Value> computed;
};

/// An assertion, of the first steps of some loops and the last ones of others.
class AtSteps {
public:
  AtSteps(OpBuilder &b, cf::AssertOp op, LoopsAround &loops) : b(b), op(op), loops(loops) {}

  /// `last` tells which, a bit for each index.
  LogicalResult assertAt(unsigned last) {
    IRMapping made;
    Location loc = op.getLoc();
    loops.noSteps = arith::ConstantIntOp::create(b, loc, b.getI1Type(), false);
    for (const Range &range : loops.ranges) {
      Value from = numberOf(range, range.from, made), to = numberOf(range, range.to, made), index = from;
      Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, to, from);
      loops.noSteps = b.createOrFold<arith::OrIOp>(loc, loops.noSteps, none);
      auto *place = llvm::find(loops.indices, range.index);
      if (place != loops.indices.end() && (last >> (place - loops.indices.begin()) & 1))
        index = lastOf(range, from, to, made);
      made.map(range.index, index);
    }
    Value holds = loops.inFront(b, op.getArg(), made);
    holds = b.createOrFold<arith::OrIOp>(loc, holds, loops.noSteps);
    std::optional<int64_t> known = getConstantIntValue(holds);
    if (known && *known != 0)
      return success();
    std::optional<std::string> numbers = numbersOf(made);
    std::string words = (op.getMsg() + numbers.value_or("")).str();
    bool always =
        isa<func::FuncOp>(loops.outermost->getParentOp()) && loops.outermost->getBlock()->isEntryBlock();
    if (known && always)
      return op->emitError(words);
    auto asserted = cf::AssertOp::create(b, loc, holds, words);
    if (Attribute compares = op->getAttr(kComparesSizes); compares && !numbers)
      asserted->setAttr(kComparesSizes, compares);
    return success();
  }

private:
  Value numberOf(const Range &range, OpFoldResult number, IRMapping &made) {
    if (auto value = dyn_cast<Value>(number))
      return loops.inFront(b, value, made);
    return constantOf(range, *getConstantIntValue(number));
  }

  Value constantOf(const Range &range, int64_t number) {
    Type type = range.index.getType();
    return arith::ConstantOp::create(b, op.getLoc(), type, b.getIntegerAttr(type, number));
  }

  Value lastOf(const Range &range, Value from, Value to, IRMapping &made) {
    Location loc = op.getLoc();
    Value one = constantOf(range, 1), step = loops.aboveZero(b, loc, numberOf(range, range.step, made));
    Value way = b.createOrFold<arith::SubIOp>(loc, b.createOrFold<arith::SubIOp>(loc, to, from), one);
    Value steps = b.createOrFold<arith::DivSIOp>(loc, way, step);
    return b.createOrFold<arith::AddIOp>(loc, from, b.createOrFold<arith::MulIOp>(loc, steps, step));
  }

  /// ": 5 and 4" where both are known now and the message does not tell them.
  std::optional<std::string> numbersOf(IRMapping &made) {
    Value holds = op.getArg();
    if (auto either = holds.getDefiningOp<arith::OrIOp>())
      holds = either.getLhs();
    auto compare = holds.getDefiningOp<arith::CmpIOp>();
    if (!compare || !op->hasAttr(kComparesSizes))
      return std::nullopt;
    using P = arith::CmpIPredicate;
    auto known = [&](Value size) { return getConstantIntValue(loops.inFront(b, size, made)); };
    std::optional<int64_t> one = known(compare.getLhs()), other = known(compare.getRhs());
    if (llvm::is_contained({P::sgt, P::ugt, P::uge, P::sle}, compare.getPredicate()))
      std::swap(one, other); // what folds has turned it around
    if (!one || !other)
      return std::nullopt;
    return (": " + Twine(*one) + " and " + Twine(*other)).str();
  }

  OpBuilder &b;
  cf::AssertOp op;
  LoopsAround &loops;
};

/// With what nobody needs any more.
void eraseAssertion(cf::AssertOp op) {
  llvm::SmallSetVector<Operation *, 8> left; // each once: what two of them need goes with the second
  auto add = [&](Value value) {
    if (Operation *maker = value.getDefiningOp())
      left.insert(maker);
  };
  add(op.getArg());
  op->erase();
  while (!left.empty()) {
    Operation *maker = left.pop_back_val();
    if (!isOpTriviallyDead(maker))
      continue;
    llvm::for_each(maker->getOperands(), add);
    maker->erase();
  }
}

/// The loops, and whatever else is, around it: the outermost one of threads first.
SmallVector<Operation *> aroundOf(Operation *op) {
  SmallVector<Operation *> found;
  size_t count = 0;
  while ((op = op->getParentOp()) && !isa<FunctionOpInterface>(op)) {
    found.push_back(op);
    if (hasThreads(op))
      count = found.size();
  }
  if (count) // else of a function that threads call
    found.truncate(count);
  std::reverse(found.begin(), found.end());
  return found;
}

LogicalResult assertInFrontOf(LoopsAround &loops, cf::AssertOp op) {
  OpBuilder b(op);
  moveForward(b, loops.outermost, loops.leaves);
  auto count = unsigned(loops.indices.size());
  AtSteps steps(b, op, loops);
  LogicalResult result = success();
  for (unsigned last = 0, all = (1U << count) - 1; last <= all && succeeded(result); ++last)
    if (count <= kManyIndices || last == 0 || last == all)
      result = steps.assertAt(last);
  eraseAssertion(op);
  return result;
}

} // namespace

LogicalResult assertInFront(cf::AssertOp op) {
  for (Operation *outermost : aroundOf(op))
    if (LoopsAround loops(op, outermost); loops.isKnown)
      return assertInFrontOf(loops, op);
  return success();
}

} // namespace offload
