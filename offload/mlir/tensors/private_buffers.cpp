//===- private_buffers.cpp - offload-private-buffers ----------------------===//
//
// Bufferization allocates what the body of a parallel loop keeps for itself: a row that it works on, a tensor
// of one element. So do authors, and what bufferized a program before it came here. The body becomes a
// kernel, each of whose threads runs one iteration and has no allocator, so that such memory is the thread's
// own where its size is known, or what it is at most: tiles at the edge of a tensor have the smaller one of
// two sizes. Else it is a piece of what the host allocates before the loop (scratch.cpp).
//
// What a loop within the body hands on to its next iteration in memory of its own (offload-carried-memory
// could not see that it has one size) stays, and is an error of the kernel's: such a loop has two buffers at
// a time, of which private memory would be one.
//
//===----------------------------------------------------------------------===//

#include "input/size_origin.h"
#include "loops/map_foralls.h"
#include "loops/parallel_loops.h"
#include "names.h"
#include "passes.h"
#include "tensors/scratch.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace offload {
namespace {

/// What a loop begins with where it has one of its arguments, which each iteration hands on as it is.
Value beforeLoop(Value memory) {
  Operation *loop =
      isa<BlockArgument>(memory) ? memory.getParentBlock()->getParentOp() : memory.getDefiningOp();
  auto carries = dyn_cast<scf::ForOp>(loop);
  if (!carries)
    return Value();
  for (unsigned i = 0; i < carries.getNumResults(); ++i) {
    Value inside = carries.getRegionIterArg(i);
    if ((memory == inside || memory == carries.getResult(i)) && carries.getYieldedValues()[i] == inside)
      return carries.getInitArgs()[i];
  }
  return Value();
}

/// What is seen on the way to what a size is at most: each once, since parts may have each other's size.
struct Seen {
  llvm::SmallPtrSet<Value, 8> sizes;
  bool isOfPart = false; // the size of what it is part of
};

std::optional<int64_t> least(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

/// The largest value that a size may have that `at` needs, where that is known.
std::optional<int64_t> largest(OpFoldResult size, Operation *at, Seen &seen) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constant;
  auto value = cast<Value>(size);
  if (!seen.sizes.insert(value).second)
    return std::nullopt;
  Operation *op = value.getDefiningOp();
  std::optional<int64_t> bound;
  if (auto min = dyn_cast_or_null<affine::AffineMinOp>(op)) {
    for (AffineExpr each : min.getMap().getResults())
      if (auto constant = dyn_cast<AffineConstantExpr>(each))
        bound = least(bound, constant.getValue());
    return bound;
  }
  if (auto dim = dyn_cast_or_null<memref::DimOp>(op))
    if (std::optional<int64_t> axis = dim.getConstantIndex();
        axis && isa<MemRefType>(dim.getSource().getType()))
      if (OpFoldResult taken = sizeOf(dim.getSource(), *axis))
        return largest(taken, at, seen);
  if (isa_and_nonnull<arith::MinSIOp, arith::MinUIOp>(op)) {
    for (Value operand : op->getOperands())
      bound = least(bound, largest(operand, at, seen));
    return bound;
  }
  for (OpFoldResult whole : sizesAround(value, at))
    bound = least(bound, largest(whole, at, seen));
  seen.isOfPart |= bound.has_value();
  return bound;
}

/// The parallel loop that no other is around.
Operation *outermostLoop(Operation *op) {
  Operation *found = nullptr;
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp())
    if (isa<scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp>(loop))
      found = loop;
  return found;
}

/// Puts other memory, which nobody frees there, in the place of an allocation.
void replace(memref::AllocOp op, Value memory) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  op.replaceAllUsesWith(memory);
  op.erase();
}

/// Bytes that a thread has at most for a part of which only the whole's size is known: a window may be a few
/// elements of millions, and a thread's memory is for all that may run at once.
constexpr uint64_t kMostOfPart = 4096;

void makePrivate(memref::AllocOp op) {
  OpBuilder b(op);
  MemRefType type = op.getType();
  SmallVector<int64_t> bounds;
  bool isOfPart = false;
  auto bytes = uint64_t(bytesOf(type.getElementType()));
  for (OpFoldResult size : op.getMixedSizes()) {
    Seen seen;
    std::optional<int64_t> bound = largest(size, op, seen);
    if (!bound)
      break;
    bounds.push_back(*bound);
    isOfPart |= seen.isOfPart;
    bytes = llvm::SaturatingMultiply(bytes, uint64_t(*bound));
  }
  if (!type.getLayout().isIdentity() || leavesIteration(op))
    return;
  bool isKnown = int64_t(bounds.size()) == type.getRank();
  if (!isKnown || (isOfPart && bytes > kMostOfPart)) {
    if (Value memory = scratchFor(op, outermostLoop(op)))
      return replace(op, memory);
    if (!isKnown)
      return;
  }
  auto whole =
      MemRefType::get(bounds, type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace());
  Value memory = memref::AllocaOp::create(b, op.getLoc(), whole, op.getAlignmentAttr());
  // The threads of a loop inside share it where each has an iteration of its own (offload-map-foralls).
  if (auto loop = op->getParentOfType<scf::ForallOp>(); loop && type.hasStaticShape() && isOverBlocks(loop))
    memory.getDefiningOp()->setAttr(kOfBlock, b.getUnitAttr());
  if (!type.hasStaticShape()) {
    memory = asWhole(b, op.getLoc(), memory, op.getMixedSizes(), type);
  }
  replace(op, memory);
}

bool allocates(Operation *loop) {
  return loop->walk([](memref::AllocOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Where all that the loop allocated is private, what else it frees is that under another name.
void dropFrees(Operation *loop) {
  if (!allocates(loop))
    loop->walk([](memref::DeallocOp op) { op.erase(); });
}

/// A loop of one iteration becomes host code, which has an allocator, when the program is canonicalized; one
/// that its author maps to something does not.
bool becomesHostCode(Operation *op) {
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  if (!loop || !isa<scf::ParallelOp, scf::ForallOp>(op))
    return false;
  if (auto forall = dyn_cast<scf::ForallOp>(op))
    if (forall.getMapping() && !forall.getMapping()->empty())
      return false;
  auto lower = loop.getLoopLowerBounds(), upper = loop.getLoopUpperBounds(), steps = loop.getLoopSteps();
  if (!lower || !upper || !steps)
    return false;
  return llvm::all_of(llvm::zip_equal(*lower, *upper, *steps), [](auto bounds) {
    auto [from, to, step] = bounds;
    std::optional<int64_t> first = getConstantIntValue(from), end = getConstantIntValue(to),
                           by = getConstantIntValue(step);
    return first && end && by && *first < *end && *end - *first <= *by;
  });
}

/// Does it leave the iteration of a loop around the operation that memory is made in?
bool leavesIteration(Value memory, Operation *home) {
  if (!isa<BaseMemRefType>(memory.getType()))
    return false;
  return llvm::any_of(memory.getUses(), [&](OpOperand &use) {
    // A view, a choice or a loop that begins with it hands it on; so does the last operation of a block, its
    // terminator. (Operation::hasTrait does not know IsTerminator here.)
    Operation *op = use.getOwner();
    auto goesOn = [&](Value result) { return leavesIteration(result, home); };
    if (op != &op->getBlock()->back())
      return llvm::any_of(op->getResults(), goesOn);
    Operation *parent = op->getParentOp();
    if (isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(parent))
      return goesOn(parent->getResult(use.getOperandNumber()));
    // All iterations of a loop within have what was made before it.
    return !isa<scf::ForOp, scf::WhileOp>(parent) || !home->isProperAncestor(parent) ||
           llvm::any_of(parent->getResults(), goesOn);
  });
}

struct PrivateBuffers : public PassWrapper<PrivateBuffers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrivateBuffers)

  StringRef getArgument() const final { return "offload-private-buffers"; }
  StringRef getDescription() const final { return "Keep what an iteration of a parallel loop allocates"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    for (scf::ParallelOp loop : outermostParallel(getOperation()))
      forgetUnfitMapping(loop); // which would say who shares memory
    SmallVector<memref::AllocOp> own;
    getOperation()->walk([&](memref::AllocOp op) {
      if (op->getParentOfType<func::FuncOp>() && !op.getType().getMemorySpace() && isInParallel(op))
        own.push_back(op);
    });
    llvm::SmallSetVector<Operation *, 4> loops;
    for (memref::AllocOp op : own)
      loops.insert(outermostLoop(op));
    llvm::for_each(own, makePrivate);
    llvm::for_each(loops, dropFrees);
  }
};

} // namespace

Value asWhole(OpBuilder &b, Location loc, Value memory, ArrayRef<OpFoldResult> sizes, MemRefType type) {
  SmallVector<OpFoldResult> strides(sizes.size());
  Value stride = arith::ConstantIndexOp::create(b, loc, 1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = getAsOpFoldResult(stride);
    stride = arith::MulIOp::create(b, loc, stride, getValueOrCreateConstantIndexOp(b, loc, sizes[i]));
  }
  memory = memref::ReinterpretCastOp::create(b, loc, memory, b.getIndexAttr(0), sizes, strides);
  auto whole = memref::CastOp::create(b, loc, type, memory);
  whole->setAttr(kHidesNoGaps, b.getUnitAttr());
  return whole;
}

OpFoldResult sizeOf(Value memory, int64_t axis) {
  auto type = cast<MemRefType>(memory.getType());
  if (axis >= type.getRank())
    return OpFoldResult();
  if (!type.isDynamicDim(axis))
    return OpBuilder(type.getContext()).getIndexAttr(type.getDimSize(axis));
  if (Value before = beforeLoop(memory))
    return sizeOf(before, axis);
  Operation *op = memory.getDefiningOp();
  if (auto cast = dyn_cast_or_null<memref::CastOp>(op); cast && isa<MemRefType>(cast.getSource().getType()))
    return sizeOf(cast.getSource(), axis);
  if (auto view = dyn_cast_or_null<memref::SubViewOp>(op)) {
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (auto [i, size] : llvm::enumerate(view.getMixedSizes()))
      if (!dropped.test(unsigned(i)) && axis-- == 0)
        return size;
  }
  if (auto view = dyn_cast_or_null<memref::ViewOp>(op))
    return OpFoldResult(view.getSizes()[type.getDynamicDimIndex(unsigned(axis))]);
  if (auto view = dyn_cast_or_null<memref::ReinterpretCastOp>(op))
    return view.getMixedSizes()[size_t(axis)];
  if (auto made = dyn_cast_or_null<memref::AllocOp>(op))
    return made.getMixedSizes()[size_t(axis)];
  SizeOrigin origin = carriedOriginOf(memory, axis);
  if (origin.known)
    return OpBuilder(type.getContext()).getIndexAttr(*origin.known);
  if (origin.dimension < 0)
    return origin.value;
  return origin.value == memory ? OpFoldResult() : sizeOf(origin.value, origin.dimension);
}

bool isInParallel(Operation *op) {
  bool found = false;
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp()) {
    if (isa<scf::ParallelOp>(loop) && loop->hasAttr(gpu::getMappingAttrName()))
      return false;
    found |= isa<scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp>(loop) && !becomesHostCode(loop);
  }
  return found;
}

void dropOwnership(Operation *root) {
  SmallVector<bufferization::DeallocOp> frees;
  root->walk([&](bufferization::DeallocOp op) {
    if (isInParallel(op) && !allocates(outermostLoop(op)))
      frees.push_back(op);
  });
  for (bufferization::DeallocOp op : frees) {
    OpBuilder b(op);
    Value isOwned = arith::ConstantOp::create(b, op.getLoc(), b.getBoolAttr(false));
    for (Value result : op->getResults())
      result.replaceAllUsesWith(isOwned);
    op.erase();
  }
}

bool leavesIteration(Value memory) { return leavesIteration(memory, memory.getParentBlock()->getParentOp()); }

void registerPrivateBuffersPass() { PassRegistration<PrivateBuffers>(); }

} // namespace offload
