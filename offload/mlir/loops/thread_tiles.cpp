//===- thread_tiles.cpp - offload-thread-tiles ----------------------------===//
//
// A product of matrices, a convolution: linalg operations whose threads, one for each element of the output,
// would load the same elements of an input as their neighbours, and hardly compute more than they load. Here
// a thread has a few neighbours of the output, along a loop on which an input does not depend: what it loads
// from that one, it uses for all of them. Sums stay in registers; their steps keep the operation's order.
//
// Neighbouring threads stay neighbours along the innermost loop, where the output is in most programs, and
// along the loop that goes through the output's rows, wherever that is.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kTile = 4;             // elements of a thread
constexpr int64_t kFewThreads = 1 << 12; // a device has others for: elements that have a thread each

/// Is there an input that the reduction reads and that does not depend on a loop?
bool isShared(linalg::LinalgOp op, unsigned loop) {
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    return isa<MemRefType>(input->get().getType()) && !op.getMatchingBlockArgument(input).use_empty() &&
           !map.isFunctionOfDim(loop) &&
           llvm::any_of(reduction, [&](unsigned each) { return map.isFunctionOfDim(each); });
  });
}

/// Does an output lie along a loop, element behind element?
bool isAlongRows(linalg::LinalgOp op, unsigned loop) {
  return llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &output) { return loopAlong(output) == loop; });
}

/// The loop along which a thread has several elements: the innermost parallel one but one, or if the output's
/// rows lie along that, the next one outside, or else the innermost. An input that the reduction reads does
/// not depend on it.
std::optional<unsigned> tiledLoop(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() == 0 || op.getNumParallelLoops() < 2 ||
      !mayBeRepeated(op))
    return std::nullopt;
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t elements = 1;
  for (unsigned each : parallel)
    elements = ShapedType::isDynamic(ranges[each]) || ShapedType::isDynamic(elements)
                   ? ShapedType::kDynamic
                   : elements * ranges[each];
  if (!ShapedType::isDynamic(elements) && elements < kFewThreads)
    return std::nullopt;
  auto fits = [&](unsigned loop) {
    return (ShapedType::isDynamic(ranges[loop]) || ranges[loop] >= kTile) && isShared(op, loop);
  };
  // The innermost one is asked last.
  std::rotate(parallel.begin(), parallel.end() - 1, parallel.end());
  unsigned usual = parallel.back();
  if (isAlongRows(op, usual))
    for (unsigned loop : llvm::reverse(parallel))
      if (!isAlongRows(op, loop) && fits(loop))
        return loop;
  return fits(usual) ? std::optional(usual) : std::nullopt;
}

class Tiles {
public:
  Tiles(linalg::LinalgOp op, const LinalgSteps &steps, unsigned loop)
      : op(op), steps(steps), loop(loop), b(op), loc(op.getLoc()) {}

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    SmallVector<unsigned> parallel;
    op.getParallelDims(parallel);
    SmallVector<Value> from(parallel.size(), index(b, 0)), step(parallel.size(), index(b, 1)), until;
    for (unsigned each : parallel)
      until.push_back(each == loop ? b.createOrFold<arith::CeilDivUIOp>(loc, sizes[loop], index(b, kTile))
                                   : sizes[each]);
    scf::ParallelOp::create(b, loc, from, until, step, [&](OpBuilder &in, Location, ValueRange numbers) {
      SmallVector<Value> iteration(sizes.size());
      for (auto [each, number] : llvm::zip_equal(parallel, numbers))
        iteration[each] = number;
      tile(in, iteration);
    });
    op.erase();
  }

private:
  void tile(OpBuilder &in, SmallVector<Value> iteration) {
    Value first = arith::MulIOp::create(in, loc, iteration[loop], index(in, kTile));
    int64_t length = op.getStaticLoopRanges()[loop];
    bool areAll = !ShapedType::isDynamic(length) && length % kTile == 0;
    SmallVector<SmallVector<Value>> elements; // the iterations of a thread's elements, but for the reduction
    SmallVector<Value> exist;
    Value last = arith::SubIOp::create(in, loc, sizes[loop], index(in, 1));
    for (int64_t i = 0; i < kTile; ++i) {
      Value number = arith::AddIOp::create(in, loc, first, index(in, i));
      // Where there is no such element, the last one is computed again.
      exist.push_back(areAll || i == 0
                          ? Value()
                          : arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, number, sizes[loop]));
      iteration[loop] = exist.back() ? arith::MinUIOp::create(in, loc, number, last).getResult() : number;
      elements.push_back(iteration);
    }
    SmallVector<Value> sums;
    for (ArrayRef<Value> element : elements)
      for (OpOperand &output : op.getDpsInitsMutable())
        sums.push_back(memref::LoadOp::create(in, loc, output.get(), placeOf(in, output, element)));
    SmallVector<unsigned> reduction;
    op.getReductionDims(reduction);
    sums = reduce(in, elements, reduction, sums);
    for (auto [i, element] : llvm::enumerate(elements)) {
      OpBuilder at = in;
      if (exist[i])
        at = scf::IfOp::create(in, loc, exist[i], /*withElseRegion=*/false).getThenBodyBuilder();
      for (auto [j, output] : llvm::enumerate(op.getDpsInitsMutable()))
        memref::StoreOp::create(at, loc, sums[i * op.getNumDpsInits() + j], output.get(),
                                placeOf(at, output, element));
    }
  }

  /// The loops that reduce, one in the other.
  SmallVector<Value> reduce(OpBuilder &in, SmallVector<SmallVector<Value>> elements, ArrayRef<unsigned> loops,
                            ValueRange sums) {
    if (loops.empty()) {
      SmallVector<Value> both;
      for (ArrayRef<Value> element : elements)
        for (auto [j, value] : llvm::enumerate(steps.values(in, element)))
          both.push_back(steps.joined(in, unsigned(j), sums[both.size()], value));
      return both;
    }
    auto along = scf::ForOp::create(in, loc, index(in, 0), sizes[loops.front()], index(in, 1), sums,
                                    [&](OpBuilder &body, Location, Value number, ValueRange sofar) {
                                      for (SmallVector<Value> &element : elements)
                                        element[loops.front()] = number;
                                      scf::YieldOp::create(body, loc,
                                                           reduce(body, elements, loops.drop_front(), sofar));
                                    });
    return SmallVector<Value>(along.getResults());
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  unsigned loop; // the one that is tiled
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes; // of the loops
};

struct ThreadTiles : public PassWrapper<ThreadTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ThreadTiles)

  StringRef getArgument() const final { return "offload-thread-tiles"; }
  StringRef getDescription() const final { return "Let a thread compute several elements of products"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : hostLinalg(getOperation()))
      if (std::optional<unsigned> loop = tiledLoop(op))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          Tiles(op, *steps, *loop).replace();
  }
};

} // namespace

void registerThreadTilesPass() { PassRegistration<ThreadTiles>(); }

} // namespace offload
