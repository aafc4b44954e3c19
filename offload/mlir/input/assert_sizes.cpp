//===- assert_sizes.cpp - Sizes that are compared when the program runs ---===//
//
// What nothing compares is read and written behind its end. MLIR's generate-runtime-verification asserts the
// same of linalg's operations, behind sizes of tensors that are there for that alone; these are sizes of what
// has told them, and stand as far in front as nothing else happens: what is left of most of them are
// comparisons of arguments at the beginning of a function.
//
//===----------------------------------------------------------------------===//

#include "input/assert_sizes.h"
#include "loops/parallel_loops.h"
#include "names.h"
#include "program.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// May a comparison come before it? It neither ends the program nor is it seen from outside of it.
bool mayFollow(Operation *op) {
  if (isa<linalg::LinalgOp>(op)) // its body may print, or assert
    return llvm::all_of(op->getRegion(0).front(), [](Operation &each) { return isMemoryEffectFree(&each); });
  return isa<memref::AllocOp, memref::AllocaOp>(op) || isMemoryEffectFree(op);
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

/// "dimension 0 of operand 2 of 3".
std::string nameOf(Operation *op, const OperandSize &size) {
  return ("dimension " + Twine(size.dimension) + " of operand " + Twine(size.operand + 1) + " of " +
          Twine(op->getNumOperands()))
      .str();
}

/// Shows memory or a tensor in another way, of which nothing is read yet.
bool isView(Operation *op) {
  return isa<ViewLikeOpInterface, tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
             tensor::ExtractSliceOp, tensor::ReshapeOp>(op);
}

/// In front of which operations a part is asserted: the part itself, or, where it, or a view of it, is used
/// in other blocks alone, which may not run, the first use in each; none where nobody uses it. A mask is
/// around one operation and nothing else, and what threads insert in parallel is a part of their loop's body.
SmallVector<Operation *> placesFor(Operation *part) {
  SmallVector<Operation *> places;
  llvm::SetVector<Operation *> users(part->user_begin(), part->user_end());
  for (size_t i = 0; i < users.size(); ++i) {
    Operation *user = users[i], *place = user;
    if (isView(user) && user->getBlock() == part->getBlock()) {
      users.insert(user->user_begin(), user->user_end());
      continue;
    }
    for (Operation *around = user->getParentOp(); around != part->getParentOp();
         around = around->getParentOp())
      if (hasThreads(around) || isa<vector::MaskOp, scf::InParallelOp>(around))
        place = around;
    if (place->getBlock() == part->getBlock())
      return {part};
    auto *there =
        llvm::find_if(places, [&](Operation *each) { return each->getBlock() == place->getBlock(); });
    if (there == places.end())
      places.push_back(place);
    else if (place->isBeforeInBlock(*there))
      *there = place;
  }
  return places;
}

/// Bytes of one element in memory, at least; 0: of what this does not know.
int64_t bytesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type); // its elements lie bit by bit
  Type element = vector ? vector.getElementType() : type;
  int64_t count = !vector ? 1 : vector.isScalable() ? 0 : vector.getNumElements();
  int64_t bits = element.isIndex() ? 64 : element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  return int64_t(llvm::divideCeil(uint64_t(count * bits), 8));
}

} // namespace

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

void AssertSizes::require(OpBuilder &b, Operation *op, arith::CmpIPredicate how, Value one, Value other,
                          Value unless, const Twine &message) {
  Location loc = op->getLoc();
  Value holds = b.createOrFold<arith::CmpIOp>(loc, how, one, other);
  if (unless)
    holds = b.createOrFold<arith::OrIOp>(loc, holds, unless);
  std::string words = (op->getName().getStringRef() + ": " + message).str();
  std::optional<int64_t> known = getConstantIntValue(holds), first = getConstantIntValue(one),
                         second = getConstantIntValue(other);
  if (known && *known != 0)
    return;
  if (first && second)
    words += (": " + Twine(*first) + " and " + Twine(*second)).str();
  Block *place = b.getInsertionBlock();
  if (known && isa<func::FuncOp>(place->getParentOp()) && place->isEntryBlock()) {
    op->emitError(words);
    isWrong = true;
    return;
  }
  auto made = cf::AssertOp::create(b, loc, holds, words); // what may not run is no error yet
  if (!first || !second)
    made->setAttr(kComparesSizes, b.getBoolAttr(how == arith::CmpIPredicate::eq));
  if (isOfThreads || isRunByThreads(made))
    ofThreads.push_back(made);
}

void AssertSizes::same(Operation *op, const OperandSize &one, const OperandSize &other) {
  if (other.origin.known && !one.origin.known)
    return same(op, other, one); // the message begins with what shows when it runs
  if (isOne(one.origin, other.origin) || !isNew(op, one.origin, other.origin))
    return;
  OpBuilder b(op);
  moveForward(b, op, {one.origin.value, other.origin.value});
  Location loc = op->getLoc();
  Value size = valueOf(b, loc, other.origin), wanted = valueOf(b, loc, one.origin);
  require(b, op, arith::CmpIPredicate::eq, size, wanted, Value(),
          nameOf(op, other) + " and " + nameOf(op, one) + " have to be the same");
}

void AssertSizes::within(linalg::LinalgOp op, const OperandSize &size, AffineExpr index,
                         ArrayRef<std::optional<OperandSize>> loops) {
  SmallVector<int64_t> factors; // of the loops, then what is added
  if (failed(getFlattenedAffineExpr(index, unsigned(loops.size()), 0, &factors)) ||
      factors.size() != loops.size() + 1)
    return;
  SmallVector<Value> values = {size.origin.value};
  for (auto [factor, loop] : llvm::zip(factors, loops)) {
    if (factor != 0 && !loop)
      return; // no operand tells
    values.push_back(loop ? loop->origin.value : Value());
  }
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
    Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, steps, zero);
    nothing = b.createOrFold<arith::OrIOp>(loc, nothing, none);
    if (factor == 0)
      continue;
    Value farthest = b.createOrFold<arith::MulIOp>(loc, b.createOrFold<arith::SubIOp>(loc, steps, one),
                                                   arith::ConstantIndexOp::create(b, loc, factor));
    Value &end = factor > 0 ? last : first;
    end = b.createOrFold<arith::AddIOp>(loc, end, farthest);
    falls |= factor < 0;
  }
  require(b, op, arith::CmpIPredicate::slt, last, valueOf(b, loc, size.origin), nothing,
          "the last index has to be below " + nameOf(op, size));
  if (falls)
    require(b, op, arith::CmpIPredicate::sge, first, zero, nothing,
            "the first index must not be below zero in " + nameOf(op, size));
}

void AssertSizes::tiled(Operation *op, const OperandSize &whole, const OperandSize &tiles, OpFoldResult size,
                        bool exactly) {
  OpBuilder b(op);
  moveForward(b, op, {whole.origin.value, tiles.origin.value, dyn_cast<Value>(size)});
  Location loc = op->getLoc();
  Value count = valueOf(b, loc, tiles.origin), tile = getValueOrCreateConstantIndexOp(b, loc, size);
  Value room = b.createOrFold<arith::MulIOp>(loc, count, tile);
  require(b, op, exactly ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ule,
          valueOf(b, loc, whole.origin), room, Value(),
          nameOf(op, whole) + (exactly ? " has to fill the tiles of " : " has to fit into the tiles of ") +
              nameOf(op, tiles));
}

void AssertSizes::said(Operation *op, const OperandSize &size, ArrayRef<OpFoldResult> factors,
                       const Twine &why) {
  SmallVector<Value> values = {size.origin.value};
  for (OpFoldResult factor : factors)
    values.push_back(dyn_cast<Value>(factor));
  for (Operation *place : isView(op) ? placesFor(op) : SmallVector<Operation *>{op}) {
    OpBuilder b(place);
    moveForward(b, place, values);
    Location loc = op->getLoc();
    Value held = valueOf(b, loc, size.origin);
    Value wanted = getValueOrCreateConstantIndexOp(b, loc, factors.front());
    for (OpFoldResult factor : factors.drop_front()) {
      Value next = getValueOrCreateConstantIndexOp(b, loc, factor);
      wanted = b.createOrFold<arith::MulIOp>(loc, wanted, next);
    }
    require(b, op, arith::CmpIPredicate::eq, held, wanted, Value(), nameOf(op, size) + " has to be " + why);
  }
}

void AssertSizes::ranked(Operation *op) {
  Value source = op->getOperand(0);
  for (Operation *place : placesFor(op)) {
    OpBuilder b(place);
    moveForward(b, place, {source});
    Location loc = op->getLoc();
    Value rank = isa<TensorType>(source.getType()) ? b.createOrFold<tensor::RankOp>(loc, source)
                                                   : b.createOrFold<memref::RankOp>(loc, source);
    int64_t wanted = cast<ShapedType>(op->getResult(0).getType()).getRank();
    require(b, op, arith::CmpIPredicate::eq, rank, arith::ConstantIndexOp::create(b, loc, wanted), Value(),
            "the rank of operand 1 of 1 has to be " + Twine(wanted) + ", as it is cast to");
  }
}

void AssertSizes::laidOut(memref::CastOp op) {
  auto from = cast<MemRefType>(op.getSource().getType()), to = cast<MemRefType>(op.getType());
  SmallVector<int64_t> before, after;
  int64_t start, wantedStart;
  if (failed(from.getStridesAndOffset(before, start)) || failed(to.getStridesAndOffset(after, wantedStart)) ||
      from.getLayout().isIdentity())
    return;
  bool isWhole = to.getLayout().isIdentity(); // strides are the sizes of what comes after
  for (Operation *place : placesFor(op)) {
    OpBuilder b(place);
    moveForward(b, place, {op.getSource()});
    Location loc = op.getLoc();
    auto held = memref::ExtractStridedMetadataOp::create(b, loc, op.getSource());
    auto constant = [&](int64_t number) -> Value { return arith::ConstantIndexOp::create(b, loc, number); };
    if (ShapedType::isDynamic(start) && !ShapedType::isDynamic(wantedStart))
      require(b, op, arith::CmpIPredicate::eq, held.getOffset(), constant(wantedStart), Value(),
              "the offset of operand 1 of 1 has to be " + Twine(wantedStart) + ", as it is cast to");
    Value behind = constant(1);
    for (int64_t i = to.getRank() - 1; i >= 0; --i) {
      Value size = held.getSizes()[i];
      bool isKnown = !ShapedType::isDynamic(after[i]);
      if (ShapedType::isDynamic(before[i]) && (isKnown || isWhole)) {
        Value few = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, size, constant(1));
        require(
            b, op, arith::CmpIPredicate::eq, held.getStrides()[i], isKnown ? constant(after[i]) : behind, few,
            "the stride of dimension " + Twine(i) + " of operand 1 of 1 has to be " +
                (isKnown ? Twine(after[i]) : Twine("that of memory without gaps")) + ", as it is cast to");
      }
      behind = b.createOrFold<arith::MulIOp>(loc, behind, size);
    }
    if (held->use_empty())
      held->erase();
  }
}

void AssertSizes::part(OffsetSizeAndStrideOpInterface op, Value whole) {
  SmallVector<Operation *> places = {op};
  if (isa<tensor::ParallelInsertSliceOp>(op)) // nothing else may stand beside it
    places = {op->getParentOp()};
  else if (!isa<tensor::InsertSliceOp>(op))
    places = placesFor(op);
  for (Operation *place : places)
    for (int64_t i = 0; i < cast<ShapedType>(whole.getType()).getRank(); ++i)
      dimensionOfPart(op, originOf(whole, i), i, place);
}

void AssertSizes::inserted(OffsetSizeAndStrideOpInterface op, OpOperand &source,
                           const llvm::SmallBitVector &dropped) {
  Operation *place = isa<tensor::ParallelInsertSliceOp>(op) ? op->getParentOp() : op;
  int64_t at = 0; // dimension of the source
  for (auto [i, size] : llvm::enumerate(op.getMixedSizes())) {
    if (dropped.test(unsigned(i)))
      continue;
    OperandSize there = {source.getOperandNumber(), at, originOf(source.get(), at)};
    ++at;
    SizeOrigin wanted = originOf(size);
    if (areOne(there.origin, wanted))
      continue;
    OpBuilder b(place);
    moveForward(b, place, {there.origin.value, wanted.value});
    Location loc = op->getLoc();
    Value held = valueOf(b, loc, there.origin);
    require(b, op, arith::CmpIPredicate::eq, held, valueOf(b, loc, wanted), Value(),
            nameOf(op, there) + " has to be the size of its place");
  }
}

void AssertSizes::padded(tensor::PadOp op) {
  using Set = ValueBoundsConstraintSet;
  for (auto [i, low, high] : llvm::enumerate(op.getMixedLowPad(), op.getMixedHighPad())) {
    SizeOrigin whole = originOf(op.getSource(), int64_t(i));
    OpBuilder b(op);
    moveForward(b, op, {whole.value, dyn_cast<Value>(low), dyn_cast<Value>(high)});
    Location loc = op.getLoc();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (OpFoldResult side : {low, high})
      if (!isPositive(side))
        require(b, op, arith::CmpIPredicate::sge, getValueOrCreateConstantIndexOp(b, loc, side), zero,
                Value(), "the padding must not be below zero in dimension " + Twine(i));
    int64_t size = op.getResultType().getDimSize(unsigned(i));
    if (ShapedType::isDynamic(size))
      continue;
    AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1) + b.getAffineDimExpr(2);
    Set::Variable source(op.getSource(), int64_t(i));
    OpFoldResult wanted = b.getIndexAttr(size);
    if (Set::areEqual(Set::Variable(AffineMap::get(3, 0, sum), ArrayRef<Set::Variable>{low, source, high}),
                      wanted)
            .value_or(false))
      continue;
    Value all = b.createOrFold<arith::AddIOp>(loc, valueOf(b, loc, whole),
                                              getValueOrCreateConstantIndexOp(b, loc, low));
    all = b.createOrFold<arith::AddIOp>(loc, all, getValueOrCreateConstantIndexOp(b, loc, high));
    require(b, op, arith::CmpIPredicate::eq, all, arith::ConstantIndexOp::create(b, loc, size), Value(),
            "dimension " + Twine(i) + " has to be " + Twine(size) + " with its padding");
  }
}

void AssertSizes::joined(tensor::ConcatOp op) {
  auto at = int64_t(op.getDim());
  int64_t size = op.getResultType().getDimSize(unsigned(at));
  if (ShapedType::isDynamic(size))
    return;
  SmallVector<SizeOrigin> origins;
  SmallVector<Value> values;
  for (Value operand : op.getInputs()) {
    origins.push_back(originOf(operand, at));
    values.push_back(origins.back().value);
  }
  OpBuilder b(op);
  moveForward(b, op, values);
  Location loc = op.getLoc();
  Value all = valueOf(b, loc, origins.front());
  for (const SizeOrigin &origin : ArrayRef(origins).drop_front())
    all = b.createOrFold<arith::AddIOp>(loc, all, valueOf(b, loc, origin));
  require(b, op, arith::CmpIPredicate::eq, all, arith::ConstantIndexOp::create(b, loc, size), Value(),
          "dimension " + Twine(at) + " of all operands together has to be " + Twine(size));
}

void AssertSizes::viewed(memref::ViewOp op) {
  MemRefType type = op.getType();
  int64_t bytes = type.getMemorySpace() ? 0 : bytesOf(type.getElementType()); // a launch's has no size
  SizeOrigin whole = originOf(op.getSource(), 0);
  SmallVector<Value> values(op.getSizes());
  values.append({whole.value, op.getByteShift()});
  for (Operation *place : bytes ? placesFor(op) : SmallVector<Operation *>()) {
    OpBuilder b(place);
    moveForward(b, place, values);
    Location loc = op.getLoc();
    Value held = valueOf(b, loc, whole), wanted = arith::ConstantIndexOp::create(b, loc, bytes);
    for (OpFoldResult size : getMixedValues(type.getShape(), op.getSizes(), b))
      wanted = b.createOrFold<arith::MulIOp>(loc, wanted, getValueOrCreateConstantIndexOp(b, loc, size));
    if (getConstantIntValue(op.getByteShift()) != 0)
      require(b, op, arith::CmpIPredicate::ule, op.getByteShift(), held, Value(),
              "the shift has to be within the bytes that there are");
    Value left = b.createOrFold<arith::SubIOp>(loc, held, op.getByteShift());
    require(b, op, arith::CmpIPredicate::ule, wanted, left, Value(),
            "its elements have to fit into the bytes that are left");
  }
}

void AssertSizes::reshaped(Operation *op, Value source, Value shape) {
  auto from = cast<ShapedType>(source.getType()), to = cast<ShapedType>(op->getResult(0).getType());
  if (!from.hasRank() || !to.hasRank() || (from.hasStaticShape() && to.hasStaticShape()))
    return; // MLIR has compared
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto product = [&](ShapedType shaped, function_ref<Value(int64_t)> size) {
    Value all = arith::ConstantIndexOp::create(b, loc, 1);
    for (int64_t i = 0; i < shaped.getRank(); ++i) {
      Value next = shaped.isDynamicDim(unsigned(i))
                       ? size(i)
                       : arith::ConstantIndexOp::create(b, loc, shaped.getDimSize(unsigned(i))).getResult();
      all = b.createOrFold<arith::MulIOp>(loc, all, next);
    }
    return all;
  };
  Value held = product(from, [&](int64_t i) { return valueOf(b, loc, originOf(source, i)); });
  Value wanted = product(to, [&](int64_t i) -> Value { // read here: behind it the shape may be another one
    Value at = arith::ConstantIndexOp::create(b, loc, i);
    Value size = isa<TensorType>(shape.getType())
                     ? b.createOrFold<tensor::ExtractOp>(loc, shape, ValueRange(at))
                     : memref::LoadOp::create(b, loc, shape, ValueRange(at)).getResult();
    return getValueOrCreateCastToIndexLike(b, loc, b.getIndexType(), size);
  });
  for (Operation *place : placesFor(op)) {
    b.setInsertionPoint(place);
    require(b, op, arith::CmpIPredicate::eq, held, wanted, Value(), "the number of elements has to stay");
  }
}

void AssertSizes::launched(gpu::LaunchFuncOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(op, op.getKernelAttr());
  if (!kernel)
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto number = [&](Value like, int64_t n) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(like.getType(), n));
  };
  gpu::KernelDim3 grid = op.getGridSizeOperandValues();
  auto noBlocks = [&, found = Value()]() mutable {
    const std::array<Value, 3> sizes = {grid.x, grid.y, grid.z};
    for (Value size : found ? ArrayRef<Value>() : ArrayRef<Value>(sizes)) {
      Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, size, number(size, 0));
      found = found ? b.createOrFold<arith::OrIOp>(loc, found, none) : none;
    }
    return found;
  };
  for (auto [what, sizes] : {std::pair(StringRef("block"), op.getBlockSizeOperandValues()), {"grid", grid}}) {
    std::string name = knownSizeOf(kernel, what);
    auto known = kernel->getAttrOfType<DenseI32ArrayAttr>(name);
    if (!known || known.size() != 3)
      continue;
    for (auto [axis, size, wanted] :
         llvm::zip_equal(StringRef("xyz"), std::array{sizes.x, sizes.y, sizes.z}, known.asArrayRef()))
      if (!getConstantIntValue(size))
        require(b, op, arith::CmpIPredicate::eq, size, number(size, wanted), noBlocks(),
                "the " + what + " along " + Twine(axis) + " has to be the kernel's " + name);
  }
}

void AssertSizes::dimensionOfPart(OffsetSizeAndStrideOpInterface op, const SizeOrigin &all, int64_t dimension,
                                  Operation *place) {
  OpFoldResult offset = op.getMixedOffsets()[dimension], size = op.getMixedSizes()[dimension],
               stride = op.getMixedStrides()[dimension];
  std::optional<int64_t> step = getConstantIntValue(stride);
  if (getConstantIntValue(offset) == 0 && step == 1 && isOne(originOf(size), all))
    return;
  if (step == 1 && (isOfThreads || isRunByThreads(op)) && isWithin(offset, size, all))
    return; // most parts of loops are
  SmallVector<Value> values = {all.value};
  for (OpFoldResult number : {offset, size, stride})
    values.push_back(dyn_cast<Value>(number));
  OpBuilder b(place);
  moveForward(b, place, values);
  Location loc = op.getLoc();
  auto asValue = [&](OpFoldResult number) { return getValueOrCreateConstantIndexOp(b, loc, number); };
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  Value there = valueOf(b, loc, all), count = asValue(size), first = asValue(offset);
  Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, count, zero);
  std::string name = ("dimension " + Twine(dimension)).str();
  if (step == 1) { // unsigned, as sizes below zero do not fit either
    if (getConstantIntValue(first) != 0)
      require(b, op, arith::CmpIPredicate::ule, first, there, none,
              "the offset has to be within " + Twine(name));
    Value left = b.createOrFold<arith::SubIOp>(loc, there, first);
    require(b, op, arith::CmpIPredicate::ule, count, left, none,
            "the size has to be at most what is left of " + Twine(name));
    return;
  }
  Value way =
      b.createOrFold<arith::MulIOp>(loc, b.createOrFold<arith::SubIOp>(loc, count, one), asValue(stride));
  Value last = b.createOrFold<arith::AddIOp>(loc, first, way);
  require(b, op, arith::CmpIPredicate::sge, count, zero, Value(),
          "the size must not be below zero in " + Twine(name));
  require(b, op, arith::CmpIPredicate::ult, first, there, none,
          "the first index has to be within " + Twine(name));
  require(b, op, arith::CmpIPredicate::ult, last, there, none,
          "the last index has to be within " + Twine(name));
}

} // namespace offload
