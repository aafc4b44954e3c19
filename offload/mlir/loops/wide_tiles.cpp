//===- wide_tiles.cpp - Tiles by threads that load four numbers at once -----===//
//
// A block's tile of a product of words for threads of GPUs: a thread has four neighbours of a row and of a
// column of the tile, or twice as many in a large tile, and takes each four from the block's memory at once.
// There both factors lie along the tile, whatever they do in the program. While a thread multiplies, the next
// steps are on their way into its registers; they go into a second memory, so that one barrier does for them.
//
// Steps keep their order, and those behind the last one are not done: what a step computes is any operation.
//
//===----------------------------------------------------------------------===//

#include "loops/block_tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kSteps = 16;  // in the block's memory
constexpr int64_t kAtOnce = 4;  // steps of a loop's iteration where there are so many
constexpr int64_t kFour = 4;    // elements that are loaded together
constexpr int64_t kPadding = 4; // elements more in a row, which keeps steps in different banks
constexpr int64_t kStages = 2;  // of the block's memory

class Tile {
public:
  Tile(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile, const LinalgSteps &steps)
      : b(in), loc(tile.loc()), tile(tile), steps(steps),
        left(in, tile, tile.product.left, tile.product.row, kSteps),
        right(in, tile, tile.product.right, tile.product.column, kSteps), ofLeft(memoryOf(launch, left)),
        ofRight(memoryOf(launch, right)), fours(tile.side / kTileThreads / kFour) {}

  void write() {
    rows = places(tile.y);
    columns = places(tile.x);
    store(allSteps(before()));
  }

private:
  Value memoryOf(gpu::LaunchOp launch, const TileFactor &of) {
    auto space = gpu::AddressSpaceAttr::get(launch.getContext(), gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get({kStages, kSteps, tile.side + kPadding}, of.element(),
                                MemRefLayoutAttrInterface(), space);
    return launch.addWorkgroupAttribution(type, loc);
  }

  /// The thread's rows or columns in the tile.
  SmallVector<Value> places(Value thread) {
    Numbers at{b, loc};
    SmallVector<Value> found;
    Value first = at.times(thread, kFour);
    for (int64_t four = 0; four < fours; ++four)
      for (int64_t i = 0; i < kFour; ++i)
        found.push_back(at.plus(first, four * kTileThreads * kFour + i));
    return found;
  }

  SmallVector<Value> iterationOf(OpBuilder &in, Value row, Value column) const {
    Numbers at{in, loc};
    SmallVector<Value> iteration = tile.first;
    iteration[tile.product.row] = at.plus(tile.first[tile.product.row], row);
    iteration[tile.product.column] = at.plus(tile.first[tile.product.column], column);
    return iteration;
  }

  /// What the output has; of elements that there are not, what the last one has.
  SmallVector<Value> before() {
    Numbers at{b, loc};
    SmallVector<Value> found;
    for (Value row : rows)
      for (Value column : columns) {
        SmallVector<Value> iteration = iterationOf(b, row, column);
        for (unsigned loop : {tile.product.row, tile.product.column})
          if (!tile.areAll(loop)) {
            Value last = arith::SubIOp::create(b, loc, tile.sizes[loop], at.of(1));
            iteration[loop] = arith::MinUIOp::create(b, loc, iteration[loop], last);
          }
        found.push_back(
            memref::LoadOp::create(b, loc, tile.output().get(), placeOf(b, tile.output(), iteration)));
      }
    return found;
  }

  /// Pieces go into the block's memory along the tile: those along the steps element by element.
  void put(OpBuilder &in, const TileFactor &of, Value to, Value stage, Value from, ValueRange pieces) {
    for (auto [number, value] : llvm::enumerate(pieces)) {
      TileFactor::Piece piece = of.piece(in, from, int64_t(number));
      if (of.alongOwn) {
        vector::StoreOp::create(in, loc, value, to, ValueRange{stage, piece.row, piece.column}, false,
                                llvm::MaybeAlign(uint64_t(kFour * of.memory().getElementTypeBitWidth() / 8)));
        continue;
      }
      for (int64_t i = 0; i < of.width; ++i)
        memref::StoreOp::create(in, loc, vector::ExtractOp::create(in, loc, value, i), to,
                                ValueRange{stage, Numbers{in, loc}.plus(piece.column, i), piece.row});
    }
  }

  SmallVector<Value> own(OpBuilder &in, const TileFactor &of, Value memory, Value stage, Value step,
                         ArrayRef<Value> numbers) {
    SmallVector<Value> found;
    auto type = VectorType::get(kFour, of.element());
    for (int64_t four = 0; four < fours; ++four) {
      Value values = vector::LoadOp::create(
          in, loc, type, memory, ValueRange{stage, step, numbers[size_t(four * kFour)]}, false,
          llvm::MaybeAlign(uint64_t(kFour * type.getElementTypeBitWidth() / 8)));
      for (int64_t i = 0; i < kFour; ++i)
        found.push_back(vector::ExtractOp::create(in, loc, values, i));
    }
    return found;
  }

  /// One step of all sums of the thread.
  SmallVector<Value> add(OpBuilder &in, Value stage, Value from, Value number, ValueRange sofar) {
    SmallVector<Value> ones = own(in, left, ofLeft, stage, number, rows),
                       others = own(in, right, ofRight, stage, number, columns), both;
    bool isFirst = left.input->getOperandNumber() == 0;
    for (auto [i, one] : llvm::enumerate(ones))
      for (auto [j, other] : llvm::enumerate(others)) {
        SmallVector<Value> iteration = iterationOf(in, rows[i], columns[j]);
        iteration[tile.product.depth] = Numbers{in, loc}.plus(from, number);
        SmallVector<Value> inputs{isFirst ? one : other, isFirst ? other : one};
        Value value = steps.valuesOf(in, iteration, inputs)[0];
        both.push_back(steps.joined(in, 0, sofar[both.size()], value));
      }
    return both;
  }

  SmallVector<Value> addAll(OpBuilder &in, Value stage, Value from, Value count, int64_t atOnce,
                            ValueRange sums) {
    Numbers at{in, loc};
    auto along = scf::ForOp::create(in, loc, at.of(0), count, at.of(atOnce), sums,
                                    [&](OpBuilder &body, Location, Value first, ValueRange sofar) {
                                      SmallVector<Value> found(sofar);
                                      for (int64_t i = 0; i < atOnce; ++i)
                                        found =
                                            add(body, stage, from, Numbers{body, loc}.plus(first, i), found);
                                      scf::YieldOp::create(body, loc, found);
                                    });
    return SmallVector<Value>(along.getResults());
  }

  SmallVector<Value> allSteps(ArrayRef<Value> sums) {
    Numbers at{b, loc};
    Value all = tile.sizes[tile.product.depth], zero = at.of(0), one = at.of(1);
    Value rest = at.rest(all, kSteps), whole = arith::SubIOp::create(b, loc, all, rest);
    SmallVector<Value> lefts = left.loaded(b, zero), rights = right.loaded(b, zero);
    put(b, left, ofLeft, zero, zero, lefts);
    put(b, right, ofRight, zero, zero, rights);
    gpu::BarrierOp::create(b, loc);
    SmallVector<Value> before{zero};
    llvm::append_range(before, sums);
    auto along = scf::ForOp::create(
        b, loc, zero, whole, at.of(kSteps), before,
        [&](OpBuilder &in, Location, Value from, ValueRange sofar) {
          Numbers then{in, loc};
          Value stage = sofar[0], next = then.plus(from, kSteps);
          Value other = arith::SubIOp::create(in, loc, one, stage);
          SmallVector<Value> nextLefts = left.loaded(in, next), nextRights = right.loaded(in, next);
          SmallVector<Value> after = addAll(in, stage, from, then.of(kSteps), kAtOnce, sofar.drop_front());
          put(in, left, ofLeft, other, next, nextLefts);
          put(in, right, ofRight, other, next, nextRights);
          gpu::BarrierOp::create(in, loc);
          after.insert(after.begin(), other);
          scf::YieldOp::create(in, loc, after);
        });
    return addAll(b, along.getResult(0), whole, rest, 1, along.getResults().drop_front());
  }

  void store(ArrayRef<Value> sums) {
    Numbers at{b, loc};
    unsigned ofRow = tile.product.row, ofColumn = tile.product.column;
    SmallVector<Value> iteration = tile.first;
    for (auto [i, row] : llvm::enumerate(rows)) {
      iteration[ofRow] = at.plus(tile.first[ofRow], row);
      OpBuilder inRow = tile.whereItIs(b, iteration, ofRow);
      for (auto [j, column] : llvm::enumerate(columns)) {
        iteration[ofColumn] = Numbers{inRow, loc}.plus(tile.first[ofColumn], column);
        OpBuilder in = tile.whereItIs(inRow, iteration, ofColumn);
        memref::StoreOp::create(in, loc, sums[i * columns.size() + j], tile.output().get(),
                                placeOf(in, tile.output(), iteration));
      }
    }
  }

  OpBuilder &b;
  Location loc;
  const BlockTile &tile;
  const LinalgSteps &steps;
  TileFactor left, right;
  Value ofLeft, ofRight; // the block's memory
  int64_t fours;         // of rows, and of columns, of a thread
  SmallVector<Value> rows, columns;
};

} // namespace

void multiplyByFours(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile, const LinalgSteps &steps) {
  Tile(in, launch, tile, steps).write();
}

} // namespace offload
