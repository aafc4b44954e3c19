//===- scratch.cpp - Memory of threads whose size the run decides ---------===//
//
// What an iteration of a parallel loop keeps for itself has private memory where its size is known, or what
// it is at most (offload-private-buffers). Rows whose length is the array's have neither; the host knows it
// before the loop begins. It allocates what all iterations need, and each takes its piece. Of sizes that only
// an iteration computes it must be known what they are part of.
//
//===----------------------------------------------------------------------===//

#include "tensors/scratch.h"
#include "input/size_origin.h"
#include "loops/parallel_loops.h"
#include "names.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kPieces = 64; // bytes that each piece is a multiple of at least, as MLIR aligns allocations

/// Makes numbers of a loop's body in front of the loop.
class Before {
public:
  explicit Before(Operation *loop) : loop(loop), b(loop), loc(loop->getLoc()) {}

  /// The same number; null where it is not known there.
  Value same(OpFoldResult number) {
    if (auto constant = dyn_cast_if_present<Attribute>(number))
      return index(cast<IntegerAttr>(constant).getInt());
    auto value = dyn_cast_if_present<Value>(number);
    if (!value)
      return Value();
    if (isBefore(value))
      return value;
    Operation *op = value.getDefiningOp();
    if (OpFoldResult size = sizeTaken(op))
      return same(size);
    if (auto dim = dyn_cast_or_null<memref::DimOp>(op))
      return sizeBefore(dim);
    if (!op || op->getNumRegions() || op->getNumResults() != 1 || !isPure(op) ||
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>))
      return Value();
    IRMapping map;
    for (Value operand : op->getOperands()) {
      Value made = same(operand);
      if (!made)
        return Value();
      map.map(operand, made);
    }
    return b.clone(*op, map)->getResult(0);
  }

  /// A number that it is at most, of a size that `at` needs. Parts may have each other's size: each is looked
  /// at once.
  Value most(OpFoldResult number, Operation *at, llvm::SmallPtrSetImpl<Value> &seen) {
    if (Value known = same(number))
      return known;
    auto value = dyn_cast_if_present<Value>(number);
    Operation *op = value ? value.getDefiningOp() : nullptr;
    if (!op || !seen.insert(value).second)
      return Value();
    if (OpFoldResult size = sizeTaken(op))
      return most(size, at, seen);
    if (auto dim = dyn_cast<memref::DimOp>(op))
      return mostOfAll(dim, at, seen);
    Value least;
    auto add = [&](Value bound) {
      if (bound && least)
        bound = arith::MinSIOp::create(b, loc, least, bound);
      if (bound)
        least = bound;
    };
    if (isa<arith::MinSIOp, arith::MinUIOp>(op))
      for (Value operand : op->getOperands())
        add(most(operand, at, seen));
    if (auto min = dyn_cast<affine::AffineMinOp>(op))
      for (AffineExpr each : min.getMap().getResults())
        add(applied(min, each));
    if (!least)
      for (OpFoldResult whole : sizesAround(value, at))
        add(most(whole, at, seen));
    return least;
  }

  /// Of memory that may have one of a few sizes, the largest.
  Value mostOfAll(memref::DimOp dim, Operation *at, llvm::SmallPtrSetImpl<Value> &seen) {
    std::optional<int64_t> axis = dim.getConstantIndex();
    if (!axis || !isa<MemRefType>(dim.getSource().getType()))
      return Value();
    Value largest;
    for (SizeOrigin origin : carriedOriginsOf(dim.getSource(), *axis)) {
      Value bound;
      if (origin.known)
        bound = index(*origin.known);
      else if (origin.dimension < 0)
        bound = most(origin.value, at, seen);
      else if (isBefore(origin.value))
        bound = memref::DimOp::create(b, loc, origin.value, origin.dimension);
      if (!bound)
        return Value();
      largest = largest ? arith::MaxSIOp::create(b, loc, largest, bound) : bound;
    }
    return largest;
  }

  Value index(int64_t number) { return arith::ConstantIndexOp::create(b, loc, number); }

  Operation *loop;
  OpBuilder b;
  Location loc;

private:
  static OpFoldResult sizeTaken(Operation *op) {
    auto dim = dyn_cast_or_null<memref::DimOp>(op);
    std::optional<int64_t> axis = dim ? dim.getConstantIndex() : std::nullopt;
    return axis && isa<MemRefType>(dim.getSource().getType()) ? sizeOf(dim.getSource(), *axis)
                                                              : OpFoldResult();
  }

  bool isBefore(Value value) const { return value.getParentRegion()->isAncestor(loop->getParentRegion()); }

  /// The same of memory that is there before the loop.
  Value sizeBefore(memref::DimOp dim) {
    std::optional<int64_t> axis = dim.getConstantIndex();
    if (!axis || !isa<MemRefType>(dim.getSource().getType()))
      return Value();
    SizeOrigin origin = carriedOriginOf(dim.getSource(), *axis);
    if (origin.dimension < 0 || !isBefore(origin.value))
      return Value();
    return memref::DimOp::create(b, loc, origin.value, origin.dimension);
  }

  /// One of the numbers that an affine.min takes the least of.
  Value applied(affine::AffineMinOp min, AffineExpr each) {
    AffineMap map = min.getMap();
    SmallVector<Value> operands;
    Value any = index(0); // what the expression does not have
    for (auto [i, operand] : llvm::enumerate(min.getOperands())) {
      bool isUsed = i < map.getNumDims() ? each.isFunctionOfDim(unsigned(i))
                                         : each.isFunctionOfSymbol(unsigned(i) - map.getNumDims());
      Value made = isUsed ? same(operand) : any;
      if (!made)
        return Value();
      operands.push_back(made);
    }
    return affine::expandAffineExpr(b, loc, each, ValueRange(operands).take_front(map.getNumDims()),
                                    ValueRange(operands).drop_front(map.getNumDims()));
  }
};

/// Is it run by a thread itself, where nobody allocates?
bool isOfThread(Operation *loop) {
  auto function = loop->getParentOfType<func::FuncOp>();
  return !function || isRunByThreads(loop) ||
         calledFromKernels(function->getParentOfType<ModuleOp>()).contains(function);
}

} // namespace

int64_t bytesOf(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * bytesOf(complex.getElementType());
  if (element.isIndex())
    return 8;
  if (!element.isIntOrFloat())
    return 0;
  // A number of 24 bits lies 4 bytes from the next one.
  unsigned bits = element.getIntOrFloatBitWidth();
  return bits == 1 ? 1 : bits % 8 == 0 ? int64_t(llvm::PowerOf2Ceil(bits / 8)) : 0;
}

SmallVector<OpFoldResult> sizesAround(Value size, Operation *op) {
  SmallVector<OpFoldResult> wholes;
  for (OpOperand &use : size.getUses()) {
    auto view = dyn_cast<memref::SubViewOp>(use.getOwner());
    if (!view || !view->getBlock()->findAncestorOpInBlock(*op))
      continue;
    for (auto [axis, each] : llvm::enumerate(view.getMixedSizes()))
      if (each == OpFoldResult(size) && getConstantIntValue(view.getMixedStrides()[axis]).value_or(0) > 0)
        if (OpFoldResult whole = sizeOf(view.getSource(), int64_t(axis)); whole && whole != each)
          wholes.push_back(whole);
  }
  return wholes;
}

Value scratchFor(memref::AllocOp op, Operation *outermost) {
  MemRefType type = op.getType();
  int64_t bytes = bytesOf(type.getElementType());
  if (bytes == 0 || isOfThread(outermost))
    return Value();
  Before before(outermost);
  OpBuilder &host = before.b, b(op);
  Location loc = op.getLoc();
  before.loc = loc;
  // What one iteration needs.
  Value size = before.index(bytes);
  for (OpFoldResult each : op.getMixedSizes()) {
    llvm::SmallPtrSet<Value, 8> seen;
    Value most = before.most(each, op, seen);
    if (!most)
      return Value();
    size = host.createOrFold<arith::MulIOp>(loc, size, most);
  }
  int64_t aligned = std::max(kPieces, int64_t(op.getAlignment().value_or(1)));
  Value step = before.index(aligned);
  size = arith::CeilDivUIOp::create(host, loc, size, step);
  size = arith::MulIOp::create(host, loc, size, step);
  // How many there are, and which one this is.
  SmallVector<LoopLikeOpInterface> loops;
  for (Operation *loop = op->getParentOp();; loop = loop->getParentOp()) {
    if (isa<affine::AffineParallelOp>(loop))
      return Value();
    if (isa<scf::ParallelOp, scf::ForallOp>(loop))
      loops.push_back(cast<LoopLikeOpInterface>(loop));
    if (loop == outermost)
      break;
  }
  Value all = before.index(1), place = arith::ConstantIndexOp::create(b, loc, 0);
  for (LoopLikeOpInterface loop : llvm::reverse(loops)) {
    auto variables = loop.getLoopInductionVars();
    auto from = loop.getLoopLowerBounds(), to = loop.getLoopUpperBounds(), by = loop.getLoopSteps();
    if (!variables || !from || !to || !by)
      return Value();
    for (auto [variable, low, high, distance] : llvm::zip_equal(*variables, *from, *to, *by)) {
      Value first = before.same(low), end = before.same(high), each = before.same(distance);
      if (!first || !end || !each)
        return Value();
      Value span = arith::SubIOp::create(host, loc, end, first);
      Value some = arith::CeilDivSIOp::create(host, loc, span, each), none = before.index(0);
      Value count = arith::MaxSIOp::create(host, loc, some, none);
      all = host.createOrFold<arith::MulIOp>(loc, all, count);
      Value done = arith::SubIOp::create(b, loc, variable, first);
      Value number = arith::DivUIOp::create(b, loc, done, each);
      place = b.createOrFold<arith::MulIOp>(loc, place, count);
      place = b.createOrFold<arith::AddIOp>(loc, place, number);
    }
  }
  all = arith::MulIOp::create(host, loc, all, size);
  auto whole = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  Value memory = memref::AllocOp::create(host, loc, whole, all, b.getI64IntegerAttr(aligned));
  if (!outermost->getParentOfType<func::FuncOp>()->hasAttr(kOnTensors)) { // else offload-free-buffers does
    OpBuilder after(outermost->getContext());
    after.setInsertionPointAfter(outermost);
    memref::DeallocOp::create(after, loc, memory);
  }
  Value begin = arith::MulIOp::create(b, loc, place, size);
  return memref::ViewOp::create(b, loc, type, memory, begin, op.getDynamicSizes());
}

} // namespace offload
