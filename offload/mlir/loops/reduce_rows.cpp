//===- reduce_rows.cpp - offload-reduce-rows ------------------------------===//
//
// A linalg operation that reduces rows of memory, such as the sum or the largest value of each, or a product
// of a matrix and a vector. One thread for each row would read its elements one after another, and
// neighbouring threads would be whole rows from each other in memory. Here the lanes of a subgroup read a row
// together, and hand on to each other what they have; a long row has all threads of a block.
//
// Products of matrices are not of this kind: their elements are needed many times, by different threads.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "loops/parallel_loops.h"
#include "loops/row_threads.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kMostAlone = 1 << 15; // steps of the only row: of more, several blocks are made

/// Whether the operand's elements of neighbouring steps are neighbours in memory, or the same one.
bool isAlong(Type type, AffineMap map, unsigned loop) {
  if (!map.isFunctionOfDim(loop))
    return true;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.isStrided() || !map.isProjectedPermutation() ||
      cast<AffineDimExpr>(map.getResults().back()).getPosition() != loop)
    return false;
  return memref.getStridesAndOffset().first.back() == 1;
}

/// How many rows there are, where that is known.
std::optional<int64_t> knownRows(linalg::LinalgOp op, unsigned loop) {
  int64_t rows = 1;
  for (auto [i, range] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (i == loop)
      continue;
    if (ShapedType::isDynamic(range))
      return std::nullopt;
    rows *= range;
  }
  return rows;
}

/// The loop that reduces rows, where that is what the operation does. One input has an element for each step,
/// which nothing else needs.
std::optional<unsigned> rowsOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() != 1 || !mayBeRepeated(op))
    return std::nullopt;
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  auto loop = unsigned(llvm::find(kinds, utils::IteratorType::reduction) - kinds.begin());
  bool isRead = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isAlong(input->get().getType(), map, loop))
      return std::nullopt;
    isRead |= map.isPermutation();
  }
  bool areHandedOn = llvm::all_of(op.getRegionOutputArgs(),
                                  [](BlockArgument output) { return canBeHandedOn(output.getType()); });
  int64_t steps = op.getStaticLoopRanges()[loop];
  bool isKnown = !ShapedType::isDynamic(steps), isAlone = knownRows(op, loop) == 1;
  if (!isRead || !areHandedOn || (isKnown && steps < kRowSteps) ||
      (isAlone && (!isKnown || steps < kFewSteps || steps > kMostAlone)))
    return std::nullopt;
  return loop;
}

class Rows {
public:
  Rows(linalg::LinalgOp op, const LinalgSteps &steps, unsigned loop)
      : op(op), steps(steps), loop(loop), b(op), loc(op.getLoc()) {}

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    launchWhereLong(b, op, sizes, {{loop, kRowSteps}}, [&] { launch(); });
  }

private:
  /// A kernel whose threads along x reduce a row; there are enough steps for each of them.
  void launch() {
    bool isLong = areLong();
    lanes = isLong ? kBlockLanes : kRowLanes;
    Value rows = index(b, 1);
    SmallVector<Value> others = sizes;
    others.erase(others.begin() + loop);
    for (Value size : others)
      rows = b.createOrFold<arith::MulIOp>(loc, rows, size);
    RowThreads threads = launchRows(b, loc, rows, lanes, isLong ? 1 : kRowsOfBlock);
    OpBuilder in(threads.launch.getBody().front().getTerminator());
    // Where no row is left for a subgroup it does the last one's work again, and leaves nothing.
    Value last = arith::SubIOp::create(in, loc, rows, index(in, 1));
    SmallVector<Value> iteration =
        placeOfRow(in, loc, arith::MinUIOp::create(in, loc, threads.row, last), others);
    iteration.insert(iteration.begin() + loop, index(in, 0));
    SmallVector<Value> values = reduceOwn(in, iteration, threads.lane);
    acrossRow(threads.launch, in, loc, values, threads.lane, isLong,
              [&](unsigned output, Value one, Value other) { return steps.joined(in, output, one, other); });
    Value isFirst = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, threads.lane, index(in, 0));
    Value leaves = arith::AndIOp::create(in, loc, isFirst, threads.exists);
    scf::IfOp::create(in, loc, leaves, [&](OpBuilder &then, Location) {
      for (auto [i, output] : llvm::enumerate(op.getDpsInitsMutable())) {
        SmallVector<Value> place = placeOf(then, output, iteration);
        Value before = memref::LoadOp::create(then, loc, output.get(), place);
        Value both = steps.joined(then, unsigned(i), before, values[i]);
        memref::StoreOp::create(then, loc, both, output.get(), place);
      }
      scf::YieldOp::create(then, loc);
    });
  }

  /// Whether few rows are known to be long ones; each thread has a step at least.
  bool areLong() {
    int64_t length = op.getStaticLoopRanges()[loop];
    std::optional<int64_t> rows = knownRows(op, loop);
    return rows && *rows < kManyRows && length >= (*rows == 1 ? kBlockLanes : kLongRow);
  }

  /// What a thread's own steps give: each so many steps after the one before.
  SmallVector<Value> reduceOwn(OpBuilder &in, SmallVector<Value> iteration, Value lane) {
    iteration[loop] = lane;
    SmallVector<Value> first = steps.values(in, iteration);
    Value second = arith::AddIOp::create(in, loc, lane, index(in, lanes));
    auto rest = scf::ForOp::create(in, loc, second, sizes[loop], index(in, lanes), first,
                                   [&](OpBuilder &body, Location, Value number, ValueRange before) {
                                     iteration[loop] = number;
                                     SmallVector<Value> both(before);
                                     SmallVector<Value> values = steps.values(body, iteration);
                                     for (unsigned i = 0; i < both.size(); ++i)
                                       both[i] = steps.joined(body, i, before[i], values[i]);
                                     scf::YieldOp::create(body, loc, both);
                                   });
    return SmallVector<Value>(rest.getResults());
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  unsigned loop; // the one that reduces
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes;  // of the loops
  int64_t lanes = kRowLanes; // a row's threads
};

struct ReduceRows : public PassWrapper<ReduceRows, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceRows)

  StringRef getArgument() const final { return "offload-reduce-rows"; }
  StringRef getDescription() const final { return "Reduce rows of memory by subgroups and blocks"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallPtrSet<Operation *, 4> inKernels = calledFromKernels(getOperation()); // which launch none
    for (linalg::LinalgOp op : hostLinalg(getOperation()))
      if (std::optional<unsigned> loop = rowsOf(op);
          loop && !inKernels.contains(op->getParentOfType<func::FuncOp>()))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          Rows(op, *steps, *loop).replace();
  }
};

} // namespace

void registerReduceRowsPass() { PassRegistration<ReduceRows>(); }

} // namespace offload
