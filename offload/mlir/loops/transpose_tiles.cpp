//===- transpose_tiles.cpp - offload-transpose-tiles ----------------------===//
//
// A transpose, or another linalg operation on elements that has an input whose neighbours in memory are not
// the output's. Threads that are neighbours for the output would each read from another row of such an input.
// Here a block takes a square tile of it through its workgroup memory: threads read it along the input's
// rows, and, when all of it is there, write along the output's.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "loops/row_threads.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kSide = 32;         // of a tile
constexpr int64_t kRowsOfThreads = 8; // of a block: a thread has four elements of a tile
constexpr int64_t kMostInputs = 3;    // whose tiles a block's memory holds on every device
constexpr int64_t kFewElements = 1 << 12;

/// The two loops of a tile, and the inputs that go through it.
struct Crossing {
  unsigned along,
      across; // steps of the first are neighbours in the outputs' memory, of the other in the inputs'
  SmallVector<OpOperand *> inputs;
};

std::optional<Crossing> crossingOf(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumParallelLoops() != op.getNumLoops() || op.getNumLoops() < 2)
    return std::nullopt;
  Crossing found;
  for (auto [i, output] : llvm::enumerate(op.getDpsInitsMutable())) {
    std::optional<unsigned> loop = loopAlong(output);
    if (!loop || (i && *loop != found.along))
      return std::nullopt;
    found.along = *loop;
  }
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<unsigned> loop = loopAlong(*input);
    if (!loop || *loop == found.along || !op.getMatchingIndexingMap(input).isFunctionOfDim(found.along) ||
        op.getMatchingBlockArgument(input).use_empty() ||
        !canBeHandedOn(cast<MemRefType>(input->get().getType()).getElementType()))
      continue;
    if (found.inputs.empty())
      found.across = *loop;
    if (*loop == found.across && int64_t(found.inputs.size()) < kMostInputs)
      found.inputs.push_back(input);
  }
  int64_t elements = 1;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (int64_t range : ranges)
    elements = ShapedType::isDynamic(range) || elements == ShapedType::kDynamic ? ShapedType::kDynamic
                                                                                : elements * range;
  auto isShort = [&](unsigned loop) { return !ShapedType::isDynamic(ranges[loop]) && ranges[loop] < kSide; };
  if (found.inputs.empty() || isShort(found.along) || isShort(found.across) ||
      (!ShapedType::isDynamic(elements) && elements < kFewElements))
    return std::nullopt;
  return found;
}

class Tiles {
public:
  Tiles(linalg::LinalgOp op, const Crossing &crossing)
      : op(op), along(crossing.along), across(crossing.across), inputs(crossing.inputs), b(op),
        loc(op.getLoc()) {}

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    launchWhereLong(b, op, sizes, {{along, kSide}, {across, kSide}}, [&] { launch(); });
  }

private:
  /// One block for each tile; they are numbered along x, where a grid is longest.
  void launch() {
    SmallVector<Value> tiles = sizes;
    Value one = index(b, 1), blocks = one;
    for (auto [loop, count] : llvm::enumerate(tiles)) {
      if (loop == along || loop == across)
        count = b.createOrFold<arith::CeilDivUIOp>(loc, count, index(b, kSide));
      blocks = b.createOrFold<arith::MulIOp>(loc, blocks, count);
    }
    Value wide = index(b, kSide), high = index(b, kRowsOfThreads);
    auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, wide, high, one);
    OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
    SmallVector<Value> first = placeOfRow(in, loc, launch.getBlockIds().x, tiles);
    for (unsigned loop : {along, across})
      first[loop] = arith::MulIOp::create(in, loc, first[loop], index(in, kSide));
    auto space = gpu::AddressSpaceAttr::get(in.getContext(), gpu::AddressSpace::Workgroup);
    SmallVector<Value> held;
    for (OpOperand *input : inputs) // a column too many keeps threads that read a column in different banks
      held.push_back(launch.addWorkgroupAttribution(
          MemRefType::get({kSide, kSide + 1}, cast<MemRefType>(input->get().getType()).getElementType(),
                          MemRefLayoutAttrInterface(), space),
          loc));
    Value x = launch.getThreadIds().x, y = launch.getThreadIds().y;
    eachElement(in, first, across, x, along, y, [&](OpBuilder &at, ValueRange iteration, Value row) {
      for (auto [input, memory] : llvm::zip_equal(inputs, held)) {
        Value value = memref::LoadOp::create(at, loc, input->get(), placeOf(at, *input, iteration));
        memref::StoreOp::create(at, loc, value, memory, ValueRange{row, x});
      }
    });
    gpu::BarrierOp::create(in, loc);
    eachElement(in, first, along, x, across, y, [&](OpBuilder &at, ValueRange iteration, Value row) {
      write(at, iteration, held, {x, row});
    });
    gpu::TerminatorOp::create(in, loc);
  }

  /// A thread's elements of a tile: its own place along the loop `fast`, several along `slow`.
  void eachElement(OpBuilder &in, SmallVector<Value> iteration, unsigned fast, Value x, unsigned slow,
                   Value y, function_ref<void(OpBuilder &, ValueRange, Value)> element) {
    iteration[fast] = arith::AddIOp::create(in, loc, iteration[fast], x);
    Value isColumn = exists(in, fast, iteration[fast]), start = iteration[slow];
    scf::ForOp::create(
        in, loc, index(in, 0), index(in, kSide), index(in, kRowsOfThreads), {},
        [&](OpBuilder &body, Location, Value number, ValueRange) {
          Value row = arith::AddIOp::create(body, loc, y, number);
          iteration[slow] = arith::AddIOp::create(body, loc, start, row);
          Value isRow = exists(body, slow, iteration[slow]);
          Value isThere = isColumn && isRow ? arith::AndIOp::create(body, loc, isColumn, isRow).getResult()
                          : isColumn        ? isColumn
                                            : isRow;
          OpBuilder at = body;
          if (isThere)
            at = scf::IfOp::create(body, loc, isThere, /*withElseRegion=*/false).getThenBodyBuilder();
          element(at, iteration, row);
          scf::YieldOp::create(body, loc);
        });
  }

  /// Whether a loop has a step of this number; none where it has all of a tile's.
  Value exists(OpBuilder &in, unsigned loop, Value number) {
    int64_t range = op.getStaticLoopRanges()[loop];
    if (!ShapedType::isDynamic(range) && range % kSide == 0)
      return {};
    return arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, number, sizes[loop]);
  }

  /// What an iteration makes of its operands.
  void write(OpBuilder &in, ValueRange iteration, ArrayRef<Value> held, ArrayRef<Value> place) {
    IRMapping map;
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(&operand);
      const auto *tile = llvm::find(inputs, &operand);
      if (argument.use_empty())
        continue;
      Value value = operand.get();
      if (tile != inputs.end())
        value = memref::LoadOp::create(in, loc, held[size_t(tile - inputs.begin())], place);
      else if (isa<MemRefType>(value.getType()))
        value = memref::LoadOp::create(in, loc, value, placeOf(in, operand, iteration));
      map.map(argument, value);
    }
    for (Operation &each : op.getBlock()->without_terminator())
      if (auto number = dyn_cast<linalg::IndexOp>(each))
        map.map(number.getResult(), iteration[number.getDim()]);
      else
        in.clone(each, map);
    for (auto [output, value] :
         llvm::zip_equal(op.getDpsInitsMutable(), op.getBlock()->getTerminator()->getOperands()))
      memref::StoreOp::create(in, loc, map.lookupOrDefault(value), output.get(),
                              placeOf(in, output, iteration));
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  unsigned along, across;
  ArrayRef<OpOperand *> inputs;
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes; // of the loops
};

struct TransposeTiles : public PassWrapper<TransposeTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TransposeTiles)

  StringRef getArgument() const final { return "offload-transpose-tiles"; }
  StringRef getDescription() const final {
    return "Take what lies across the output through workgroup memory";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : launchableLinalg(getOperation()))
      if (std::optional<Crossing> crossing = crossingOf(op))
        Tiles(op, *crossing).replace();
  }
};

} // namespace

void registerTransposeTilesPass() { PassRegistration<TransposeTiles>(); }

} // namespace offload
