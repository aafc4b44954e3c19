//===- assert_sizes.cpp - Sizes that are compared when the program runs ---===//
//
// What nothing compares is read and written behind its end. MLIR's generate-runtime-verification asserts the
// same of linalg's operations, behind sizes of tensors that are there for that alone; these are sizes of what
// has told them, and stand as far in front as nothing else happens: what is left of most of them are
// comparisons of arguments at the beginning of a function.
//
//===----------------------------------------------------------------------===//

#include "input/assert_sizes.h"
#include "names.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// May a comparison come before it? It neither ends the program nor is it seen from outside of it.
bool mayFollow(Operation *op) {
  return isa<linalg::LinalgOp, memref::AllocOp, memref::AllocaOp>(op) || isMemoryEffectFree(op);
}

/// The first place in the operation's block that has all values.
void moveForward(OpBuilder &b, Operation *op, ArrayRef<Value> values) {
  llvm::SmallPtrSet<Operation *, 4> makers;
  for (Value value : values)
    if (Operation *maker = value ? value.getDefiningOp() : nullptr)
      makers.insert(maker);
  Operation *place = op;
  while (Operation *before = place->getPrevNode()) {
    if (makers.contains(before) || !mayFollow(before))
      break;
    place = before;
  }
  b.setInsertionPoint(place);
}

Value valueOf(OpBuilder &b, Location loc, const SizeOrigin &origin) {
  if (origin.known)
    return arith::ConstantIndexOp::create(b, loc, *origin.known);
  if (origin.dimension < 0)
    return origin.value;
  if (isa<TensorType>(origin.value.getType()))
    return b.createOrFold<tensor::DimOp>(loc, origin.value, origin.dimension);
  return b.createOrFold<memref::DimOp>(loc, origin.value, origin.dimension);
}

bool isOne(const SizeOrigin &a, const SizeOrigin &b) {
  if (a.known || b.known)
    return a.known == b.known;
  if (a.value == b.value && a.dimension == b.dimension)
    return true;
  if (a.dimension < 0 || b.dimension < 0)
    return false;
  return ValueBoundsConstraintSet::areEqual({a.value, a.dimension}, {b.value, b.dimension}).value_or(false);
}

/// "dimension 0 of operand 2 of 3".
std::string nameOf(Operation *op, const OperandSize &size) {
  return ("dimension " + Twine(size.dimension) + " of operand " + Twine(size.operand + 1) + " of " +
          Twine(op->getNumOperands()))
      .str();
}

void assertThat(OpBuilder &b, Operation *op, Value holds, const Twine &message) {
  auto made =
      cf::AssertOp::create(b, op->getLoc(), holds, (op->getName().getStringRef() + ": " + message).str());
  made->setAttr(kComparesSizes, b.getUnitAttr());
}

} // namespace

bool AssertSizes::isNew(Operation *op, const SizeOrigin &one, const SizeOrigin &other) {
  auto half = [](const SizeOrigin &origin) {
    return std::make_pair(origin.value.getAsOpaquePointer(), origin.known.value_or(origin.dimension));
  };
  SmallVector<Operation *, 1> &before = compared[std::minmax(half(one), half(other))];
  for (Operation *there : before)
    if (there->getBlock()->findAncestorOpInBlock(*op))
      return false;
  before.push_back(op);
  return true;
}

void AssertSizes::same(Operation *op, const OperandSize &one, const OperandSize &other) {
  if (other.origin.known && !one.origin.known)
    return same(op, other, one); // the message begins with what shows when it runs
  if (isOne(one.origin, other.origin) || !isNew(op, one.origin, other.origin))
    return;
  OpBuilder b(op);
  moveForward(b, op, {one.origin.value, other.origin.value});
  Location loc = op->getLoc();
  Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, valueOf(b, loc, other.origin),
                                      valueOf(b, loc, one.origin));
  assertThat(b, op, equal, nameOf(op, other) + " has to be as long as " + nameOf(op, one));
}

void AssertSizes::within(linalg::LinalgOp op, const OperandSize &size, AffineExpr index,
                         ArrayRef<std::optional<OperandSize>> loops) {
  SmallVector<int64_t> factors; // of the loops, then what is added
  if (failed(getFlattenedAffineExpr(index, unsigned(loops.size()), 0, &factors)) ||
      factors.size() != loops.size() + 1)
    return;
  bool known = size.origin.known.has_value();
  SmallVector<Value> values = {size.origin.value};
  for (auto [factor, loop] : llvm::zip(factors, loops)) {
    if (factor != 0 && !loop)
      return; // no operand tells
    known &= factor == 0 || loop->origin.known;
    values.push_back(loop ? loop->origin.value : Value());
  }
  if (known)
    return; // linalg's verifier has looked
  OpBuilder b(op);
  moveForward(b, op, values);
  Location loc = op.getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  Value last = arith::ConstantIndexOp::create(b, loc, factors.back()), first = last;
  Value nothing = arith::ConstantIntOp::create(b, loc, b.getI1Type(), false); // is done at all
  bool falls = factors.back() < 0;
  for (auto [factor, loop] : llvm::zip(factors, loops)) {
    if (!loop)
      continue;
    Value steps = valueOf(b, loc, loop->origin);
    Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, steps, zero);
    nothing = arith::OrIOp::create(b, loc, nothing, none);
    if (factor == 0)
      continue;
    Value farthest = arith::MulIOp::create(b, loc, arith::SubIOp::create(b, loc, steps, one),
                                           arith::ConstantIndexOp::create(b, loc, factor));
    Value &end = factor > 0 ? last : first;
    end = arith::AddIOp::create(b, loc, end, farthest);
    falls |= factor < 0;
  }
  auto compare = [&](arith::CmpIPredicate how, Value end, Value bound, const char *text) {
    Value inside = arith::CmpIOp::create(b, loc, how, end, bound);
    assertThat(b, op, arith::OrIOp::create(b, loc, inside, nothing), text + nameOf(op, size));
  };
  compare(arith::CmpIPredicate::slt, last, valueOf(b, loc, size.origin), "the last index has to be below ");
  if (falls)
    compare(arith::CmpIPredicate::sge, first, zero, "the first index must not be below zero in ");
}

void AssertSizes::part(OffsetSizeAndStrideOpInterface op, Value whole) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto asValue = [&](OpFoldResult number) { return getValueOrCreateConstantIndexOp(b, loc, number); };
  for (auto [i, offset, size, stride] :
       llvm::enumerate(op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    SizeOrigin all = originOf(whole, int64_t(i)), taken = originOf(size);
    std::optional<int64_t> from = getConstantIntValue(offset), step = getConstantIntValue(stride);
    if (all.known && from && taken.known && step)
      continue; // the operation's verifier has looked
    if (from == 0 && step == 1 && isOne(taken, all))
      continue;
    SmallVector<Value> values = {all.value};
    for (OpFoldResult number : {offset, size, stride})
      values.push_back(dyn_cast<Value>(number));
    moveForward(b, op, values);
    std::string dimension = ("dimension " + Twine(i)).str();
    Value there = valueOf(b, loc, all), count = asValue(size), first = asValue(offset);
    if (step == 1) { // unsigned, as sizes below zero do not fit either
      auto fits = [&](Value number, Value most, const Twine &text) {
        Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, number, most);
        assertThat(b, op, holds, text);
      };
      if (from != 0)
        fits(first, there, "the offset has to be within " + Twine(dimension));
      fits(count, arith::SubIOp::create(b, loc, there, first),
           "the size has to be at most what is left of " + Twine(dimension));
      continue;
    }
    Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
    Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero);
    Value way = arith::MulIOp::create(b, loc, arith::SubIOp::create(b, loc, count, one), asValue(stride));
    Value last = arith::AddIOp::create(b, loc, first, way);
    for (auto [end, text] : {std::pair(first, "the first index has to be within "),
                             std::pair(last, "the last index has to be within ")}) {
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, end, there);
      assertThat(b, op, arith::OrIOp::create(b, loc, inside, none), text + Twine(dimension));
    }
  }
}

} // namespace offload
