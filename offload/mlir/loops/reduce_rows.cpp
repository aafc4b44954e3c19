//===- reduce_rows.cpp - offload-reduce-rows ------------------------------===//
//
// A linalg operation that reduces rows of memory, such as the sum or the largest value of each, or a product
// of a matrix and a vector. One thread for each row would read its elements one after another, and
// neighbouring threads would be whole rows from each other in memory. Here the lanes of a subgroup read a row
// together, and hand on to each other what they have; a long row has all threads of a block. A row may be in
// pieces that are far from each other, as the images of a channel are: its threads go through one after
// another together.
//
// Columns, whose neighbours are neighbours in memory, have a thread each already; where there are many steps
// to each and few columns, the device would stand idle. There, a block has some columns, and the threads
// along y share out their steps.
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
constexpr int64_t kColumns = 32;        // of a block
constexpr int64_t kColumnLanes = 16;    // share out a column's steps
constexpr int64_t kManyColumns = 1 << 16;

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

/// How many rows there are, and how many steps each has, where that is known.
struct Counts {
  explicit Counts(linalg::LinalgOp op) {
    for (auto [range, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
      std::optional<int64_t> &count = kind == utils::IteratorType::parallel ? rows : steps;
      if (ShapedType::isDynamic(range))
        count = std::nullopt;
      else if (count)
        *count *= range;
    }
  }

  std::optional<int64_t> rows = 1, steps = 1;
};

/// Whether the steps of a loop that reduces are neighbours in memory, and one input has an element for each
/// step of all loops, which nothing else needs.
bool isAlongRows(linalg::LinalgOp op, unsigned loop) {
  bool isRead = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isAlong(input->get().getType(), map, loop))
      return false;
    isRead |= map.isPermutation();
  }
  return isRead;
}

/// So many steps along memory are enough for all lanes: each has one at least, of every piece of a row.
int64_t leastSteps(linalg::LinalgOp op) { return op.getNumReductionLoops() == 1 ? kRowSteps : kRowLanes; }

/// The loop along memory, where the operation reduces rows.
std::optional<unsigned> rowsOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() == 0 || !mayBeRepeated(op))
    return std::nullopt;
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  unsigned *loop = llvm::find_if(reduction, [&](unsigned each) { return isAlongRows(op, each); });
  bool areHandedOn = llvm::all_of(op.getRegionOutputArgs(),
                                  [](BlockArgument output) { return canBeHandedOn(output.getType()); });
  if (loop == reduction.end() || !areHandedOn)
    return std::nullopt;
  Counts counts(op);
  int64_t along = op.getStaticLoopRanges()[*loop];
  if ((!ShapedType::isDynamic(along) && along < leastSteps(op)) ||
      (counts.steps && *counts.steps < kRowSteps))
    return std::nullopt;
  bool isAlone = counts.rows == 1;
  if (isAlone &&
      (reduction.size() > 1 || !counts.steps || counts.steps < kFewSteps || counts.steps > kMostAlone))
    return std::nullopt;
  return *loop;
}

/// Loops of an operation that reduces columns.
struct Columns {
  unsigned along;  // over neighbours in memory
  unsigned shared; // the longest one that reduces, as far as is known
};

std::optional<Columns> columnsOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() == 0 || !mayBeRepeated(op) ||
      !llvm::all_of(op.getRegionOutputArgs(),
                    [](BlockArgument output) { return canBeHandedOn(output.getType()); }))
    return std::nullopt;
  int64_t bytes = 0;
  for (BlockArgument output : op.getRegionOutputArgs())
    bytes += kColumnLanes * kColumns * (output.getType().getIntOrFloatBitWidth() / 8);
  if (bytes > kSharedBytes)
    return std::nullopt;
  Counts counts(op);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if ((counts.rows && *counts.rows >= kManyColumns) || (counts.steps && *counts.steps < kFewSteps) ||
      llvm::is_contained(ranges, 0))
    return std::nullopt;
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  auto length = [&](unsigned loop) {
    return ShapedType::isDynamic(ranges[loop]) ? std::numeric_limits<int64_t>::max() : ranges[loop];
  };
  unsigned shared =
      *llvm::max_element(reduction, [&](unsigned a, unsigned b) { return length(a) < length(b); });
  if (length(shared) < kColumnLanes)
    return std::nullopt;
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isPermutation())
      if (std::optional<unsigned> along = loopAlong(*input);
          along && op.getIteratorTypesArray()[*along] == utils::IteratorType::parallel)
        return Columns{*along, shared};
  return std::nullopt;
}

/// The steps of a row that one of its threads does; it has one at least.
struct Share {
  Value from, until, step;
};

class Rows {
public:
  Rows(linalg::LinalgOp op, const LinalgSteps &steps, unsigned loop)
      : op(op), steps(steps), loop(loop), b(op), loc(op.getLoc()) {
    op.getReductionDims(pieces);
    llvm::erase(pieces, loop);
    op.getParallelDims(rowLoops);
  }

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    SmallVector<std::pair<unsigned, int64_t>> least = {{loop, leastSteps(op)}};
    for (unsigned piece : pieces)
      least.emplace_back(piece, 1);
    launchWhereLong(b, op, sizes, least, [&] {
      Value rows = countRows();
      bool isAlone = Counts(op).rows == 1;
      launchRows(b, loc, rows, sizes[loop], isAlone || !pieces.empty() ? kLongRowLanes : kLongRow,
                 [&](RowThreads threads) { write(threads, rows); });
    });
  }

  void replaceColumns(unsigned along) {
    llvm::erase(rowLoops, along);
    rowLoops.push_back(along);
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    SmallVector<std::pair<unsigned, int64_t>> least = {{loop, pieces.empty() ? kFewSteps : kColumnLanes}};
    for (unsigned piece : pieces)
      least.emplace_back(piece, 1);
    launchWhereLong(b, op, sizes, least, [&] { launchColumns(); });
  }

private:
  /// What threads along x do that reduce a row; there are enough steps for each of them.
  void write(RowThreads threads, Value rows) {
    OpBuilder in(threads.launch.getBody().front().getTerminator());
    // Where no row is left for a subgroup it does the last one's work again, and leaves nothing.
    Value last = arith::SubIOp::create(in, loc, rows, index(in, 1));
    SmallVector<Value> iteration = firstOf(in, arith::MinUIOp::create(in, loc, threads.row, last));
    Share share{threads.lane, sizes[loop], index(in, threads.lanes)};
    SmallVector<Value> values = reduceOwn(in, iteration, share);
    for (auto [i, value] : llvm::enumerate(values))
      value = threads.joined(in, loc, value, [&, i = i](Value one, Value other) {
        return steps.joined(in, unsigned(i), one, other);
      });
    leave(in, iteration, threads.lane, threads.exists, [&](OpBuilder &, unsigned i) { return values[i]; });
  }

  /// A kernel whose threads along y reduce a column; there are enough steps for each of them. They have steps
  /// that follow each other, which caches like, where those along x are neighbours already.
  void launchColumns() {
    Value rows = countRows(), one = index(b, 1), columns = index(b, kColumns);
    Value blocks = b.createOrFold<arith::CeilDivUIOp>(loc, rows, columns);
    auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, columns, index(b, kColumnLanes), one);
    OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
    in.setInsertionPoint(gpu::TerminatorOp::create(in, loc));
    Value first = arith::MulIOp::create(in, loc, launch.getBlockIds().x, columns);
    Value column = launch.getThreadIds().x, lane = launch.getThreadIds().y;
    Value row = arith::AddIOp::create(in, loc, first, column);
    Value exists = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, row, rows);
    SmallVector<Value> iteration = firstOf(in, row), memory;
    for (BlockArgument output : op.getRegionOutputArgs())
      memory.push_back(memoryOfBlock(launch, {kColumnLanes, kColumns}, output.getType()));
    scf::IfOp::create(in, loc, exists, [&](OpBuilder &then, Location) {
      auto begin = [&](Value lane) -> Value {
        // Where all lanes have as many steps, that shows.
        if (int64_t size = op.getStaticLoopRanges()[loop]; size > 0 && size % kColumnLanes == 0)
          return arith::MulIOp::create(then, loc, lane, index(then, size / kColumnLanes));
        Value before = arith::MulIOp::create(then, loc, lane, sizes[loop]);
        return arith::DivUIOp::create(then, loc, before, index(then, kColumnLanes));
      };
      Value next = arith::AddIOp::create(then, loc, lane, index(then, 1));
      Share share{begin(lane), begin(next), index(then, 1)};
      for (auto [value, held] : llvm::zip_equal(reduceOwn(then, iteration, share), memory))
        memref::StoreOp::create(then, loc, value, held, ValueRange{lane, column});
      scf::YieldOp::create(then, loc);
    });
    gpu::BarrierOp::create(in, loc);
    leave(in, iteration, lane, exists, [&](OpBuilder &then, unsigned i) {
      auto held = [&](int64_t lane) -> Value {
        return memref::LoadOp::create(then, loc, memory[i], ValueRange{index(then, lane), column});
      };
      Value value = held(0);
      for (int64_t other = 1; other < kColumnLanes; ++other)
        value = steps.joined(then, i, value, held(other));
      return value;
    });
  }

  Value countRows() {
    Value rows = index(b, 1);
    for (unsigned each : rowLoops)
      rows = b.createOrFold<arith::MulIOp>(loc, rows, sizes[each]);
    return rows;
  }

  /// The first step of a row.
  SmallVector<Value> firstOf(OpBuilder &in, Value row) {
    SmallVector<Value> iteration(sizes.size(), index(in, 0)), others;
    for (unsigned each : rowLoops)
      others.push_back(sizes[each]);
    for (auto [each, number] : llvm::zip_equal(rowLoops, placeOfRow(in, loc, row, others)))
      iteration[each] = number;
    return iteration;
  }

  /// The first lane of a row that there is adds to the outputs what all of its lanes have.
  void leave(OpBuilder &in, ValueRange iteration, Value lane, Value exists,
             function_ref<Value(OpBuilder &, unsigned)> valueOf) {
    Value isFirst = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, lane, index(in, 0));
    Value leaves = arith::AndIOp::create(in, loc, isFirst, exists);
    scf::IfOp::create(in, loc, leaves, [&](OpBuilder &then, Location) {
      for (auto [i, output] : llvm::enumerate(op.getDpsInitsMutable())) {
        SmallVector<Value> place = placeOf(then, output, iteration);
        Value before = memref::LoadOp::create(then, loc, output.get(), place);
        Value both = steps.joined(then, unsigned(i), before, valueOf(then, unsigned(i)));
        memref::StoreOp::create(then, loc, both, output.get(), place);
      }
      scf::YieldOp::create(then, loc);
    });
  }

  /// What a thread's own steps give. Of a row in pieces the first step is like any other: a loop that leaves
  /// it out, in one of the pieces, is none whose steps threads take together.
  SmallVector<Value> reduceOwn(OpBuilder &in, SmallVector<Value> iteration, const Share &share) {
    if (pieces.empty()) {
      iteration[loop] = share.from;
      SmallVector<Value> first = steps.values(in, iteration);
      Value second = arith::AddIOp::create(in, loc, share.from, share.step);
      return reduceRest(in, iteration, {second, share.until, share.step}, {}, first);
    }
    SmallVector<Value> none;
    for (unsigned i = 0; i < unsigned(op.getNumDpsInits()); ++i)
      none.push_back(steps.neutral(in, i));
    return reduceRest(in, iteration, share, pieces, none);
  }

  /// With what was reduced before; a loop for each dimension of the pieces.
  SmallVector<Value> reduceRest(OpBuilder &in, SmallVector<Value> iteration, const Share &share,
                                ArrayRef<unsigned> around, ValueRange before) {
    unsigned along = around.empty() ? loop : around.front();
    Share all = around.empty() ? share : Share{index(in, 0), sizes[along], index(in, 1)};
    auto rest = scf::ForOp::create(in, loc, all.from, all.until, all.step, before,
                                   [&](OpBuilder &body, Location, Value number, ValueRange before) {
                                     iteration[along] = number;
                                     SmallVector<Value> both(before);
                                     if (around.empty()) {
                                       for (auto [i, value] : llvm::enumerate(steps.values(body, iteration)))
                                         both[i] = steps.joined(body, unsigned(i), before[i], value);
                                     } else {
                                       both = reduceRest(body, iteration, share, around.drop_front(), before);
                                     }
                                     scf::YieldOp::create(body, loc, both);
                                   });
    return SmallVector<Value>(rest.getResults());
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  unsigned loop;                             // that a row's lanes share out
  SmallVector<unsigned, 4> pieces, rowLoops; // the others that reduce; those of different rows
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes; // of the loops
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
    for (linalg::LinalgOp op : launchableLinalg(getOperation())) {
      std::optional<unsigned> loop = rowsOf(op);
      std::optional<Columns> columns = loop ? std::nullopt : columnsOf(op);
      std::optional<LinalgSteps> steps = loop || columns ? LinalgSteps::of(op) : std::nullopt;
      if (!steps)
        continue;
      if (loop)
        Rows(op, *steps, *loop).replace();
      else
        Rows(op, *steps, columns->shared).replaceColumns(columns->along);
    }
  }
};

} // namespace

void registerReduceRowsPass() { PassRegistration<ReduceRows>(); }

} // namespace offload
