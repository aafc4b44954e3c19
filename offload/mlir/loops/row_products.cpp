//===- row_products.cpp - offload-row-products ----------------------------===//
//
// A product of matrices both of which lie along the loop that reduces, as inputs and the weights of a layer
// do, with too few rows or columns for a block's tile. A thread for each element of the output, or for a few,
// would be a whole row of memory away from its neighbours. Here the lanes of a subgroup go along the rows
// together, as they do where a row is reduced alone; what they load serves some rows of one input and some
// of the other. They hand on to each other what they have in halves: of two sums, one half of the lanes ends
// with the first and the other half with the second, until each has its part of one. GPUs take several steps
// at once where memory lies well.
//
//===----------------------------------------------------------------------===//

#include "loops/block_tile.h"
#include "loops/row_threads.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// A product's loops, of rows of its first and of its second input, and the one that reduces.
struct RowProduct {
  unsigned rows[2], depth;
};

constexpr int64_t kPieceBytes = 16; // that a lane loads at once,
constexpr int64_t kMostAtOnce = 8;  // and elements
constexpr int64_t kMostPlain = 6;   // operations of a step that is written out for each of these

/// So many rows of each input a subgroup has; of the first several, or one where there are no more.
constexpr int64_t kShared[2] = {4, 2}, kAlone[2] = {1, 4};

/// The innermost parallel loop that an input depends on and the other one does not.
std::optional<unsigned> ownLoop(linalg::LinalgOp op, unsigned input) {
  auto dependsOn = [&](unsigned input, unsigned loop) {
    return op.getMatchingIndexingMap(op.getDpsInputOperand(input)).isFunctionOfDim(loop);
  };
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  for (unsigned loop : llvm::reverse(parallel))
    if (dependsOn(input, loop) && !dependsOn(1 - input, loop))
      return loop;
  return std::nullopt;
}

std::optional<RowProduct> productOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() != 1 || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1 || !mayBeRepeated(op) || !canBeHandedOn(op.getRegionOutputArgs()[0].getType()))
    return std::nullopt;
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  RowProduct found{{}, reduction[0]};
  for (unsigned input = 0; input < 2; ++input) {
    OpOperand *operand = op.getDpsInputOperand(input);
    std::optional<unsigned> own = ownLoop(op, input);
    if (!own || !isa<MemRefType>(operand->get().getType()) || loopAlong(*operand) != found.depth)
      return std::nullopt;
    found.rows[input] = *own;
  }
  int64_t steps = op.getStaticLoopRanges()[found.depth];
  if (!ShapedType::isDynamic(steps) && steps < kRowSteps)
    return std::nullopt;
  return found;
}

class Rows {
public:
  Rows(linalg::LinalgOp op, const LinalgSteps &steps, const RowProduct &product)
      : op(op), steps(steps), product(product), b(op), loc(op.getLoc()) {}

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    launchWhereLong(b, op, sizes, {{product.depth, kRowSteps}}, [&] {
      whereLeast(b, loc, sizes[product.rows[0]], 2, [&] { launch(kShared); }, [&] { launch(kAlone); });
    });
  }

private:
  /// A kernel whose subgroups have so many rows of each input.
  void launch(const int64_t (&count)[2]) {
    SmallVector<unsigned> loops;
    op.getParallelDims(loops);
    SmallVector<Value> groups;
    Value all = index(b, 1), ofRows[2];
    for (unsigned loop : loops) {
      groups.push_back(sizes[loop]);
      for (unsigned input = 0; input < 2; ++input)
        if (loop == product.rows[input])
          groups.back() = ofRows[input] =
              b.createOrFold<arith::CeilDivUIOp>(loc, sizes[loop], index(b, count[input]));
      all = b.createOrFold<arith::MulIOp>(loc, all, groups.back());
    }
    RowThreads threads = launchSubgroups(b, loc, all);
    OpBuilder in(threads.launch.getBody().front().getTerminator());
    // Where nothing is left for a subgroup it does the last one's work again, and leaves nothing.
    Value last = arith::SubIOp::create(in, loc, all, index(in, 1));
    Value group = arith::MinUIOp::create(in, loc, threads.row, last);
    // The rows of the larger input come from far away once: with each of them go all of the other one's.
    Value isFirstLarger = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ugt, sizes[product.rows[0]],
                                                sizes[product.rows[1]]);
    Value few = arith::SelectOp::create(in, loc, isFirstLarger, ofRows[1], ofRows[0]);
    Value ofFew = arith::RemUIOp::create(in, loc, group, few);
    Value rest = arith::DivUIOp::create(in, loc, group, few);
    SmallVector<Value> iteration(sizes.size()), others;
    for (auto [loop, size] : llvm::zip_equal(loops, groups))
      others.push_back(loop == product.rows[0] ? index(in, 1)
                       : loop == product.rows[1]
                           ? arith::SelectOp::create(in, loc, isFirstLarger, ofRows[0], ofRows[1])
                           : size);
    for (auto [loop, number] : llvm::zip_equal(loops, placeOfRow(in, loc, rest, others)))
      iteration[loop] = number;
    Value ofMany = iteration[product.rows[1]];
    iteration[product.rows[0]] = arith::SelectOp::create(in, loc, isFirstLarger, ofMany, ofFew);
    iteration[product.rows[1]] = arith::SelectOp::create(in, loc, isFirstLarger, ofFew, ofMany);
    int64_t width = atOnce();
    if (width > 1) {
      auto either = scf::IfOp::create(in, loc, fits(in, width, threads.lanes), /*withElseRegion=*/true);
      either->setAttr(kWideRows, in.getUnitAttr());
      OpBuilder wide = either.getThenBodyBuilder();
      write(wide, threads, iteration, count, width);
      in = either.getElseBodyBuilder();
    }
    write(in, threads, iteration, count, 1);
  }

  /// How many steps a lane may take at once.
  int64_t atOnce() {
    int64_t width = kMostAtOnce;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto type = cast<MemRefType>(input->get().getType());
      AffineMap map = op.getMatchingIndexingMap(input);
      bool areNeighbours = map.getDimPosition(map.getNumResults() - 1) == product.depth &&
                           type.getStridesAndOffset().first.back() == 1;
      Type element = type.getElementType();
      int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
      bool isPart = bits % 8 == 0 && bits < kPieceBytes * 8 && llvm::isPowerOf2_64(uint64_t(bits));
      if (!areNeighbours || type.getMemorySpace() || !isPart)
        return 1;
      width = std::min(width, kPieceBytes * 8 / bits);
    }
    int64_t length = op.getStaticLoopRanges()[product.depth];
    if (!ShapedType::isDynamic(length) && (length % width != 0 || length < kRowLanes * width))
      return 1;
    bool isPlain =
        range_size(op.getBlock()->without_terminator()) <= kMostPlain &&
        llvm::all_of(*op.getBlock(), [](Operation &each) {
          return each.getNumRegions() == 0 && !isa_and_nonnull<math::MathDialect>(each.getDialect());
        });
    return isPlain ? width : 1;
  }

  /// Whether pieces of so many steps lie at multiples of their bytes, and there is one for each lane.
  Value fits(OpBuilder &in, int64_t width, int64_t lanes) {
    Value steps = sizes[product.depth];
    Value rest = arith::AndIOp::create(in, loc, steps, index(in, width - 1));
    Value fit = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, rest, index(in, 0));
    auto needs = [&](Value also) { fit = arith::AndIOp::create(in, loc, fit, also); };
    needs(arith::CmpIOp::create(in, loc, arith::CmpIPredicate::uge, steps, index(in, lanes * width)));
    for (OpOperand *input : op.getDpsInputOperands()) {
      int64_t bytes = cast<MemRefType>(input->get().getType()).getElementTypeBitWidth() / 8;
      needs(areMultiples(in, loc, input->get(), width * bytes));
    }
    return fit;
  }

  /// `width`: steps that a lane takes at once, of which there are whole pieces, at least one for each lane.
  void write(OpBuilder &in, const RowThreads &threads, SmallVector<Value> iteration,
             const int64_t (&count)[2], int64_t width) {
    SmallVector<Value> numbers[2];
    for (unsigned input = 0; input < 2; ++input) {
      Value &first = iteration[product.rows[input]];
      first = arith::MulIOp::create(in, loc, first, index(in, count[input]));
      for (int64_t i = 0; i < count[input]; ++i)
        numbers[input].push_back(behind(in, input, first, i, count[input]));
    }
    SmallVector<Value> step = iteration;
    // There is a step, or a piece, for each lane.
    step[product.depth] = arith::MulIOp::create(in, loc, threads.lane, index(in, width));
    SmallVector<Value> first = stepsFrom(in, step, numbers, width, {});
    Value together = index(in, threads.lanes * width);
    Value second = arith::AddIOp::create(in, loc, step[product.depth], together);
    auto rest =
        scf::ForOp::create(in, loc, second, sizes[product.depth], together, first,
                           [&](OpBuilder &body, Location, Value number, ValueRange before) {
                             step[product.depth] = number;
                             scf::YieldOp::create(body, loc, stepsFrom(body, step, numbers, width, before));
                           });
    SmallVector<Value> sums(rest.getResults());
    int64_t lanesOfSum = handOn(in, threads.lane, sums);
    leave(in, threads, iteration, count, sums.front(), lanesOfSum);
  }

  /// The row that comes so many behind a subgroup's first; where there is none, the last one, which is
  /// multiplied again.
  Value behind(OpBuilder &in, unsigned input, Value first, int64_t by, int64_t count) {
    Value number = arith::AddIOp::create(in, loc, first, index(in, by));
    int64_t length = op.getStaticLoopRanges()[product.rows[input]];
    if (by == 0 || (!ShapedType::isDynamic(length) && length % count == 0))
      return number;
    Value last = arith::SubIOp::create(in, loc, sizes[product.rows[input]], index(in, 1));
    return arith::MinUIOp::create(in, loc, number, last);
  }

  /// Leaves one value, of which each lane has all; so many lanes that follow each other have the same one,
  /// and so many the next. There are as many values as a power of two.
  int64_t handOn(OpBuilder &in, Value lane, SmallVector<Value> &values) {
    int64_t together = kRowLanes;
    auto fromOther = [&](Value value) -> Value {
      return gpu::ShuffleOp::create(in, loc, value, int32_t(together), int32_t(kRowLanes),
                                    gpu::ShuffleMode::XOR)
          .getShuffleResult();
    };
    while (values.size() > 1) {
      together /= 2;
      size_t half = values.size() / 2;
      Value bit = arith::AndIOp::create(in, loc, lane, index(in, together));
      Value isUpper = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ne, bit, index(in, 0));
      for (size_t i = 0; i < half; ++i) {
        Value lower = values[i], upper = values[i + half];
        Value given = arith::SelectOp::create(in, loc, isUpper, lower, upper);
        Value kept = arith::SelectOp::create(in, loc, isUpper, upper, lower);
        values[i] = steps.joined(in, 0, kept, fromOther(given));
      }
      values.truncate(half);
    }
    int64_t lanesOfValue = together;
    while ((together /= 2) > 0)
      values[0] = steps.joined(in, 0, values[0], fromOther(values[0]));
    return lanesOfValue;
  }

  /// Values, if there are such, joined with what so many steps from one on make of each row of the first
  /// input with each of the second.
  SmallVector<Value> stepsFrom(OpBuilder &in, SmallVector<Value> iteration,
                               const SmallVector<Value> (&numbers)[2], int64_t width, ValueRange before) {
    SmallVector<Value> pieces[2], values(before);
    for (unsigned input = 0; input < 2; ++input)
      for (Value number : numbers[input]) {
        OpOperand *operand = op.getDpsInputOperand(input);
        iteration[product.rows[input]] = number;
        pieces[input].push_back(load(in, *operand, iteration, width));
      }
    Value from = iteration[product.depth];
    for (int64_t i = 0; i < width; ++i) {
      auto element = [&](Value piece) -> Value {
        return width == 1 ? piece : vector::ExtractOp::create(in, loc, piece, i).getResult();
      };
      iteration[product.depth] = arith::AddIOp::create(in, loc, from, index(in, i));
      SmallVector<Value> made;
      for (auto [row, left] : llvm::zip_equal(numbers[0], pieces[0]))
        for (auto [column, right] : llvm::zip_equal(numbers[1], pieces[1])) {
          iteration[product.rows[0]] = row;
          iteration[product.rows[1]] = column;
          made.push_back(steps.valuesOf(in, iteration, {element(left), element(right)})[0]);
        }
      for (auto [old, value] : llvm::zip(values, made))
        old = steps.joined(in, 0, old, value);
      if (values.empty())
        values = made;
    }
    return values;
  }

  Value load(OpBuilder &in, OpOperand &operand, ValueRange iteration, int64_t width) {
    SmallVector<Value> place = placeOf(in, operand, iteration);
    if (width == 1)
      return memref::LoadOp::create(in, loc, operand.get(), place);
    auto type = VectorType::get(width, cast<MemRefType>(operand.get().getType()).getElementType());
    llvm::MaybeAlign alignment(uint64_t(width * type.getElementTypeBitWidth() / 8));
    return vector::LoadOp::create(in, loc, type, operand.get(), place, false, alignment);
  }

  /// The first lane of each sum adds it to the output.
  void leave(OpBuilder &in, const RowThreads &threads, SmallVector<Value> iteration,
             const int64_t (&count)[2], Value sum, int64_t lanesOfSum) {
    OpOperand &output = *op.getDpsInitOperand(0);
    Value number = arith::DivUIOp::create(in, loc, threads.lane, index(in, lanesOfSum));
    Value within = arith::RemUIOp::create(in, loc, threads.lane, index(in, lanesOfSum));
    Value isFirst = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, within, index(in, 0));
    Value leaves = arith::AndIOp::create(in, loc, isFirst, threads.exists);
    Value own[2] = {arith::DivUIOp::create(in, loc, number, index(in, count[1])),
                    arith::RemUIOp::create(in, loc, number, index(in, count[1]))};
    for (unsigned input = 0; input < 2; ++input) {
      Value &row = iteration[product.rows[input]];
      row = arith::AddIOp::create(in, loc, row, own[input]);
      Value exists =
          arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, row, sizes[product.rows[input]]);
      leaves = arith::AndIOp::create(in, loc, leaves, exists);
    }
    scf::IfOp::create(in, loc, leaves, [&](OpBuilder &then, Location) {
      SmallVector<Value> place = placeOf(then, output, iteration);
      Value before = memref::LoadOp::create(then, loc, output.get(), place);
      memref::StoreOp::create(then, loc, steps.joined(then, 0, before, sum), output.get(), place);
      scf::YieldOp::create(then, loc);
    });
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  RowProduct product;
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes; // of the loops
};

struct RowProducts : public PassWrapper<RowProducts, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RowProducts)

  StringRef getArgument() const final { return "offload-row-products"; }
  StringRef getDescription() const final { return "Multiply few rows with rows by subgroups"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : launchableLinalg(getOperation()))
      if (std::optional<RowProduct> product = productOf(op))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          Rows(op, *steps, *product).replace();
  }
};

} // namespace

void registerRowProductsPass() { PassRegistration<RowProducts>(); }

} // namespace offload
