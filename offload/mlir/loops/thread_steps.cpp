//===- thread_steps.cpp - Several elements for a thread ---------------------===//
//
// A loop that does little with what it loads is as fast as memory is, if enough loads are on their way. A GPU
// of 2022 needs some 30 KB of them for each multiprocessor to keep its memory busy (bandwidth times latency),
// which 2048 threads with an element each do not have where elements are small. A thread takes as many as 16
// bytes hold. They are a block's width apart: neighbouring threads stay neighbours in memory, and nothing
// has to be aligned.
//
// Here that is a loop; offload-join-steps, which the GPUs' pipelines have, takes its steps at once. Threads
// of the CPU go through memory from end to end either way.
//
//===----------------------------------------------------------------------===//

#include "loops/thread_steps.h"
#include "names.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kBytes = 16;           // of one array, for a thread
constexpr int64_t kMostSteps = 8;        // and registers for what else there is
constexpr unsigned kMostOperations = 48; // of a step
constexpr int64_t kManyBlocks = 4;       // of a row, the last of which may have little to do
constexpr int64_t kFew = 1 << 18;        // elements that a device has a thread for each, at once

/// Bytes of an element; 0 of types that have no size here.
int64_t bytesOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.isScalable() ? 0 : vector.getNumElements() * bytesOf(vector.getElementType());
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * bytesOf(complex.getElementType());
  if (type.isIndex())
    return 8;
  return type.isIntOrFloat() ? int64_t(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)) : 0;
}

/// Bytes of the largest element that a step loads or stores; 0 where it does something else than to load, to
/// compute and to store.
int64_t largestElement(Block &body) {
  int64_t largest = 0;
  unsigned count = 0;
  bool stores = false;
  for (Operation &op : body.without_terminator()) {
    if (++count > kMostOperations || op.getNumRegions() || isa<gpu::GPUDialect>(op.getDialect()))
      return 0;
    Type element;
    if (auto load = dyn_cast<memref::LoadOp>(op))
      element = load.getMemRefType().getElementType();
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      element = store.getMemRefType().getElementType(), stores = true;
    else if (!isPure(&op))
      return 0;
    if (!element)
      continue;
    int64_t bytes = bytesOf(element);
    if (bytes == 0)
      return 0;
    largest = std::max(largest, bytes);
  }
  return stores ? largest : 0;
}

/// Iterations of all loops together, where all are known.
std::optional<int64_t> iterations(scf::ParallelOp loop) {
  int64_t product = 1;
  for (Value bound : loop.getUpperBound()) {
    std::optional<int64_t> count = getConstantIntValue(bound);
    if (!count || llvm::MulOverflow(product, *count, product))
      return std::nullopt;
  }
  return product;
}

} // namespace

int64_t stepsOfThread(scf::ParallelOp loop, int64_t width) {
  int64_t bytes = loop.getNumReductions() ? 0 : largestElement(*loop.getBody());
  if (bytes == 0)
    return 1;
  if (std::optional<int64_t> all = iterations(loop); all && *all < kFew)
    return 1;
  int64_t steps = std::clamp<int64_t>(kBytes / bytes, 1, kMostSteps);
  std::optional<int64_t> length = getConstantIntValue(loop.getUpperBound().back());
  if (!length) // of many short rows threads would be left without steps
    return loop.getNumLoops() == 1 ? steps : 1;
  while (steps > 1 && *length % (width * steps) != 0 && *length < kManyBlocks * width * steps)
    steps /= 2;
  return steps;
}

void giveSteps(scf::ParallelOp threads, int64_t width, int64_t steps) {
  unsigned last = threads.getNumLoops() - 1;
  OpBuilder b(threads);
  Location loc = threads.getLoc();
  Value bound = threads.getUpperBound()[last], most = arith::ConstantIndexOp::create(b, loc, width);
  bool isWhole = getConstantIntValue(bound).has_value();
  if (!isWhole) { // convert-parallel-loops-to-gpu looks for the constant in affine.min
    AffineExpr known = b.getAffineConstantExpr(width), given = b.getAffineDimExpr(0);
    most = affine::AffineMinOp::create(b, loc, AffineMap::get(1, 0, {known, given}, b.getContext()), bound);
  }
  threads.getUpperBoundMutable()[last].set(most);
  Value thread = threads.getInductionVars()[last];
  Block *body = threads.getBody();
  b.setInsertionPointToStart(body);
  // Here, in the kernel, they are constants, and not its arguments.
  Value wide = arith::ConstantIndexOp::create(b, loc, width),
        whole = arith::ConstantIndexOp::create(b, loc, width * steps);
  auto loop = scf::ForOp::create(b, loc, thread, isWhole ? whole : bound, wide);
  loop->setAttr(kIndependentSteps, b.getI64IntegerAttr(steps));
  thread.replaceUsesWithIf(loop.getInductionVar(), [&](OpOperand &use) { return use.getOwner() != loop; });
  loop.getBody()->getOperations().splice(loop.getBody()->begin(), body->getOperations(),
                                         std::next(loop->getIterator()), std::prev(body->end()));
}

} // namespace offload
