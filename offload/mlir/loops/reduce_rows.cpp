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
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

constexpr int64_t kLanes = 32;      // that reduce a row together, on every target
constexpr int64_t kRows = 4;        // of a block
constexpr int64_t kThreads = 256;   // of a block that has one long row
constexpr int64_t kEnough = 64;     // steps, two for each lane: a thread alone is as fast with fewer
constexpr int64_t kLong = 2048;     // steps
constexpr int64_t kManyRows = 1024; // fill a device by a subgroup each

/// Types that lanes hand on to each other.
bool canBeHandedOn(Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isInteger(32) || type.isInteger(64) ||
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

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

/// The loop that reduces rows, where that is what the operation does. One input has an element for each step,
/// which nothing else needs.
std::optional<unsigned> rowsOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() != 1 || op.getNumParallelLoops() == 0)
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
  if (!isRead || !areHandedOn || (!ShapedType::isDynamic(steps) && steps < kEnough))
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
    if (!ShapedType::isDynamic(op.getStaticLoopRanges()[loop])) {
      launch();
      op.erase();
      return;
    }
    Value enough = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, sizes[loop], index(b, kEnough));
    auto either = scf::IfOp::create(b, loc, enough, /*withElseRegion=*/true);
    b.setInsertionPointToStart(either.thenBlock());
    launch();
    op->moveBefore(either.elseBlock(), either.elseBlock()->begin());
  }

private:
  /// A kernel whose threads along x reduce a row; there are enough steps for each of them.
  void launch() {
    bool isLong = areLong();
    lanes = isLong ? kThreads : kLanes;
    int64_t together = isLong ? 1 : kRows;
    Value rows = index(b, 1), one = rows;
    for (auto [i, size] : llvm::enumerate(sizes))
      if (i != loop)
        rows = b.createOrFold<arith::MulIOp>(loc, rows, size);
    Value blocks = b.createOrFold<arith::CeilDivUIOp>(loc, rows, index(b, together));
    auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, index(b, lanes), index(b, together), one);
    OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
    Value lane = launch.getThreadIds().x, row = launch.getBlockIds().x;
    Value isMine = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, lane, index(in, 0)), mine = row;
    if (together > 1) {
      // Where no row is left for a subgroup it does the last one's work again, and leaves nothing.
      Value first = arith::MulIOp::create(in, loc, row, index(in, together));
      row = arith::AddIOp::create(in, loc, first, launch.getThreadIds().y);
      Value exists = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, row, rows);
      isMine = arith::AndIOp::create(in, loc, isMine, exists);
      mine = arith::MinUIOp::create(in, loc, row, arith::SubIOp::create(in, loc, rows, index(in, 1)));
    }
    SmallVector<Value> iteration = iterationOf(in, mine);
    SmallVector<Value> values = reduceOwn(in, iteration, lane);
    for (int32_t offset = kLanes / 2; offset > 0; offset /= 2)
      join(values, in, [&](Value value) -> Value {
        return gpu::ShuffleOp::create(in, loc, value, offset, kLanes, gpu::ShuffleMode::XOR)
            .getShuffleResult();
      });
    if (isLong)
      reduceBlock(launch, in, values, lane);
    iteration[loop] = index(in, 0);
    scf::IfOp::create(in, loc, isMine, [&](OpBuilder &then, Location) {
      for (auto [i, output] : llvm::enumerate(op.getDpsInitsMutable())) {
        SmallVector<Value> place = steps.placeOf(then, output, iteration);
        Value before = memref::LoadOp::create(then, loc, output.get(), place);
        Value both = steps.joined(then, unsigned(i), before, values[i]);
        memref::StoreOp::create(then, loc, both, output.get(), place);
      }
      scf::YieldOp::create(then, loc);
    });
    gpu::TerminatorOp::create(in, loc);
  }

  /// Whether few rows are known to be long ones.
  bool areLong() {
    int64_t rows = 1;
    for (auto [i, range] : llvm::enumerate(op.getStaticLoopRanges()))
      if (ShapedType::isDynamic(range))
        return false;
      else if (i != loop)
        rows *= range;
    return op.getStaticLoopRanges()[loop] >= kLong && rows < kManyRows;
  }

  /// The numbers of the parallel loops' iteration that is a row's. Rows are numbered as loops are nested.
  SmallVector<Value> iterationOf(OpBuilder &in, Value row) {
    SmallVector<Value> iteration(sizes.size());
    Value rest = row;
    for (unsigned i = unsigned(sizes.size()), left = op.getNumParallelLoops(); i-- > 0;) {
      if (i == loop)
        continue;
      iteration[i] = --left ? arith::RemUIOp::create(in, loc, rest, sizes[i]).getResult() : rest;
      if (left)
        rest = arith::DivUIOp::create(in, loc, rest, sizes[i]);
    }
    return iteration;
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

  /// What the subgroups of a block have goes through its memory; each thread then has all of it.
  void reduceBlock(gpu::LaunchOp launch, OpBuilder &in, SmallVectorImpl<Value> &values, Value lane) {
    constexpr int64_t kSubgroups = kThreads / kLanes;
    auto space = gpu::AddressSpaceAttr::get(in.getContext(), gpu::AddressSpace::Workgroup);
    Value isFirst =
        arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq,
                              arith::RemUIOp::create(in, loc, lane, index(in, kLanes)), index(in, 0));
    SmallVector<Value> memory;
    for (Value value : values)
      memory.push_back(launch.addWorkgroupAttribution(
          MemRefType::get({kSubgroups}, value.getType(), MemRefLayoutAttrInterface(), space), loc));
    Value subgroup = arith::DivUIOp::create(in, loc, lane, index(in, kLanes));
    scf::IfOp::create(in, loc, isFirst, [&](OpBuilder &then, Location) {
      for (auto [value, held] : llvm::zip_equal(values, memory))
        memref::StoreOp::create(then, loc, value, held, subgroup);
      scf::YieldOp::create(then, loc);
    });
    gpu::BarrierOp::create(in, loc);
    for (auto [i, value, held] : llvm::enumerate(values, memory)) {
      value = memref::LoadOp::create(in, loc, held, index(in, 0));
      for (int64_t other = 1; other < kSubgroups; ++other)
        value = steps.joined(in, unsigned(i), value, memref::LoadOp::create(in, loc, held, index(in, other)));
    }
  }

  void join(SmallVectorImpl<Value> &values, OpBuilder &in, llvm::function_ref<Value(Value)> other) {
    for (auto [i, value] : llvm::enumerate(values))
      value = steps.joined(in, unsigned(i), value, other(value));
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  unsigned loop; // the one that reduces
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes; // of the loops
  int64_t lanes = kLanes;   // a row's threads
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
    for (linalg::LinalgOp op : hostLinalg(getOperation()))
      if (std::optional<unsigned> loop = rowsOf(op))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          Rows(op, *steps, *loop).replace();
  }
};

} // namespace

void registerReduceRowsPass() { PassRegistration<ReduceRows>(); }

} // namespace offload
