//===- register_tiles.cpp - Tiles by matrix units whose registers are known -===//
//
// A block's tile of a product for units that multiply 16 x 16 by 16 x 8 elements of 16 bits, or 16 x 32 by
// 32 x 8 bytes, and whose sums of words lie in registers that the code knows: m16n8k16 and m16n8k32 of
// nvgpu.mma.sync. Each subgroup of 32 threads has a half of the tile's rows and a quarter of its columns.
// Bytes are taken in twos as if they were one element; such that have their neighbours along the steps can
// be.
//
// Several times as much memory as some steps need: while these are multiplied, the next ones come from there
// into registers, and the copies of those behind are on their way. A piece that a copy cannot take (what lies
// at odd places) is loaded element by element instead. Elements that there are not are zeros. One barrier for
// some steps: what is overwritten after it was read before it.
//
// In memory rows are not padded: the pieces of a row, of 16 bytes, change places, so that eight rows that are
// read together, or eight pieces of one that are written together, are in different banks.
//
//===----------------------------------------------------------------------===//

#include "loops/block_tile.h"
#include "names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kParts = 2;         // of the steps in a stage's memory, each those of one product
constexpr int64_t kMemory = 48 << 10; // bytes of the block's memory, which has as many stages as that holds
constexpr int64_t kLanes = 32;        // of a subgroup
constexpr int64_t kDown = 2, kAcross = 4;   // subgroups that share a column of the tile, a row
constexpr int64_t kRows = 16, kColumns = 8; // of a product
constexpr int64_t kRowBytes = 32;           // of a product's factors, along the steps,
constexpr int64_t kPieceBytes = 16;         // of what keeps together,
constexpr int64_t kBankBytes = 128;         // of what is in different banks,
constexpr int64_t kWordBytes = 4;           // and of a register
constexpr int64_t kPair = 2;                // sums that are neighbours

class Tile {
public:
  Tile(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile)
      : b(in), loc(tile.loc()), tile(tile), bytes(bytesOf(*tile.product.left)), depth(kRowBytes / bytes),
        steps(kParts * depth), stages(kMemory / (2 * tile.side * kParts * kRowBytes)),
        left(in, tile, tile.product.left, tile.product.row, steps),
        right(in, tile, tile.product.right, tile.product.column, steps), ofLeft(memoryOf(launch, left)),
        ofRight(memoryOf(launch, right)), down(tile.side / kDown / kRows),
        across(tile.side / kAcross / kColumns) {
    word = left.element().isInteger() ? Type(in.getI32Type()) : Type(in.getF32Type());
  }

  void write() {
    Numbers at{b, loc};
    Value thread = tile.thread(b);
    lane = at.rest(thread, kLanes);
    Value warp = at.over(thread, kLanes);
    firstRow = at.times(at.over(warp, kAcross), tile.side / kDown);
    firstColumn = at.times(at.rest(warp, kAcross), tile.side / kAcross);
    placesOfSums();
    findPlaces();
    store(allSteps(before()));
  }

private:
  /// A place in the block's memory, but for the stage.
  struct Place {
    Value row, column;
  };

  static int64_t bytesOf(OpOperand &operand) {
    return cast<MemRefType>(operand.get().getType()).getElementTypeBitWidth() / 8;
  }

  Value memoryOf(gpu::LaunchOp launch, const TileFactor &of) const {
    auto space = gpu::AddressSpaceAttr::get(launch.getContext(), gpu::AddressSpace::Workgroup);
    auto type =
        MemRefType::get({stages, of.rows(), of.columns()}, of.element(), MemRefLayoutAttrInterface(), space);
    return launch.addWorkgroupAttribution(type, launch.getLoc());
  }

  /// Where the pieces of a row are: `row` may be less by a multiple of eight.
  Value changed(OpBuilder &in, const TileFactor &of, Value row, Value column) const {
    Numbers at{in, loc};
    // So many rows lie side by side in all banks, of 128 bytes, and have so many pieces each.
    int64_t pieces = std::min(of.columns() * bytes, kBankBytes) / kPieceBytes,
            together = kBankBytes / kPieceBytes / pieces;
    Value by = at.times(at.rest(at.over(row, together), pieces), kPieceBytes / bytes);
    return arith::XOrIOp::create(in, loc, column, by);
  }

  /// Where the lane's row of four matrices is, of 8 rows of 16 bytes, which are loaded at once: of each
  /// factor, for each product along its own loop (for each two of the right one) and each along the steps.
  void findPlaces() {
    Numbers at{b, loc};
    Value inMatrix = at.rest(lane, 8), low = at.rest(at.over(lane, 8), 2), high = at.over(lane, 16);
    auto places = [&](const TileFactor &of, Value first, bool isLeft) {
      // Rows of the memory are the own loop's, or the steps. Of the left factor the second matrix has the
      // next rows of the product, of the right one the next steps.
      bool lowIsRow = isLeft != of.alongOwn;
      Value row = at.plus(inMatrix, at.times(lowIsRow ? low : high, 8));
      Value column = at.times(lowIsRow ? high : low, kPieceBytes / bytes);
      SmallVector<Place> found;
      for (int64_t i = 0; i < (isLeft ? tile.side / kDown : tile.side / kAcross) / 16; ++i)
        for (int64_t step = 0; step < steps; step += depth) {
          Value own = at.plus(first, i * 16), along = at.of(step);
          Value isRow = of.alongOwn ? along : own, isColumn = of.alongOwn ? own : along;
          Value place = changed(b, of, row, at.plus(isColumn, column));
          found.push_back({at.plus(isRow, row), place});
        }
      return found;
    };
    lefts = places(left, firstRow, true);
    rights = places(right, firstColumn, false);
  }

  /// The row and the column in the tile of each of the lane's sums, by product, row and column in it.
  void placesOfSums() {
    Numbers at{b, loc};
    Value row = at.plus(firstRow, at.over(lane, 4));
    Value column = at.plus(firstColumn, at.times(at.rest(lane, 4), kPair));
    for (int64_t i = 0; i < down * 2; ++i)
      rows.push_back(at.plus(tile.first[tile.product.row], at.plus(row, i * kRows / 2)));
    for (int64_t j = 0; j < across; ++j)
      for (int64_t k = 0; k < kPair; ++k)
        columns.push_back(at.plus(tile.first[tile.product.column], at.plus(column, j * kColumns + k)));
  }

  SmallVector<Value> placeOfSum(OpBuilder &in, Value row, Value column) const {
    SmallVector<Value> iteration = tile.first;
    iteration[tile.product.row] = row;
    iteration[tile.product.column] = column;
    return placeOf(in, tile.output(), iteration);
  }

  /// What the output has, with which sums begin; of elements that there are not, what the last one has.
  SmallVector<Value> before() {
    Numbers at{b, loc};
    auto within = [&](unsigned loop, ArrayRef<Value> numbers) {
      SmallVector<Value> found(numbers);
      if (!tile.areAll(loop)) {
        Value last = arith::SubIOp::create(b, loc, tile.sizes[loop], at.of(1));
        for (Value &number : found)
          number = arith::MinUIOp::create(b, loc, number, last);
      }
      return found;
    };
    SmallVector<Value> ofRows = within(tile.product.row, rows),
                       ofColumns = within(tile.product.column, columns);
    SmallVector<Value> sums;
    for (int64_t i = 0; i < down; ++i)
      for (int64_t j = 0; j < across; ++j) {
        SmallVector<Value> elements;
        for (int64_t p = 0; p < 2; ++p)
          for (int64_t q = 0; q < kPair; ++q) {
            Value element = memref::LoadOp::create(
                b, loc, tile.output().get(),
                placeOfSum(b, ofRows[size_t(2 * i + p)], ofColumns[size_t(kPair * j + q)]));
            if (element.getType() != word)
              element = arith::ExtFOp::create(b, loc, word, element);
            elements.push_back(element);
          }
        sums.push_back(vector::FromElementsOp::create(b, loc, VectorType::get({2, kPair}, word), elements));
      }
    return sums;
  }

  void copy(OpBuilder &in, const TileFactor &of, Value to, Value from, Value stage, bool allSteps) {
    for (int64_t number = 0; number < of.pieces; ++number) {
      TileFactor::Piece piece = of.piece(in, from, number, allSteps);
      Value column = changed(in, of, piece.row, piece.column);
      auto place = placeOf(in, *of.input, piece.iteration);
      nvgpu::DeviceAsyncCopyOp::create(in, loc, nvgpu::DeviceAsyncTokenType::get(in.getContext()), to,
                                       {stage, piece.row, column}, of.input->get(), place,
                                       in.getIndexAttr(kPieceBytes / bytes), piece.count, in.getUnitAttr());
    }
  }

  /// Starts to copy some steps, if there are such: a group of copies, which may be of none.
  void start(OpBuilder &in, Value from, Value stage) {
    auto copyBoth = [&](OpBuilder &at, bool allSteps) {
      copy(at, left, ofLeft, from, stage, allSteps);
      copy(at, right, ofRight, from, stage, allSteps);
      scf::YieldOp::create(at, loc);
    };
    // Most have all of them, and need not ask for each row.
    Numbers at{in, loc};
    Value all = tile.sizes[tile.product.depth];
    Value areAll = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ule, at.plus(from, steps), all);
    scf::IfOp::create(
        in, loc, areAll, [&](OpBuilder &then, Location) { copyBoth(then, true); },
        [&](OpBuilder &other, Location) {
          Value areSome = Numbers{other, loc}.isBelow(from, all);
          scf::IfOp::create(other, loc, areSome, [&](OpBuilder &then, Location) { copyBoth(then, false); });
          scf::YieldOp::create(other, loc);
        });
    nvgpu::DeviceAsyncCreateGroupOp::create(in, loc, nvgpu::DeviceAsyncTokenType::get(in.getContext()),
                                            ValueRange());
  }

  Value loadMatrices(OpBuilder &in, const TileFactor &of, Value memory, Value stage, const Place &place,
                     bool transposed) {
    auto type = VectorType::get({4, kWordBytes / bytes}, of.element());
    return nvgpu::LdMatrixOp::create(in, loc, type, memory, ValueRange{stage, place.row, place.column},
                                     transposed, 4);
  }

  /// What a subgroup multiplies in one part of the steps of a stage's memory, in registers: the right factor,
  /// for each two products, and the left one.
  SmallVector<Value> registers(OpBuilder &in, Value stage, size_t part) {
    SmallVector<Value> found;
    for (size_t j = 0; j < size_t(across) / 2; ++j)
      found.push_back(loadMatrices(in, right, ofRight, stage, rights[j * kParts + part], right.alongOwn));
    for (size_t i = 0; i < size_t(down); ++i)
      found.push_back(loadMatrices(in, left, ofLeft, stage, lefts[i * kParts + part], left.alongOwn));
    return found;
  }

  SmallVector<Value> multiply(OpBuilder &in, ValueRange factors, ValueRange sofar) {
    SmallVector<Value> sums(sofar), ofColumns;
    ValueRange ofRows = factors.take_back(size_t(down));
    for (Value two : factors.drop_back(size_t(down)))
      for (int64_t k : {0, 2})
        ofColumns.push_back(vector::ExtractStridedSliceOp::create(
            in, loc, two, ArrayRef<int64_t>{k}, ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1}));
    for (auto [number, sum] : llvm::enumerate(sums)) {
      auto product = nvgpu::MmaSyncOp::create(in, loc, ofRows[number / size_t(across)],
                                              ofColumns[number % size_t(across)], sum,
                                              ArrayRef<int64_t>{kRows, kColumns, depth});
      if (word.isInteger())
        product->setAttr(kWraps, in.getUnitAttr());
      sum = product;
    }
    return sums;
  }

  /// Waits until all groups of copies have ended but so many, of each thread.
  void wait(OpBuilder &in, Value group, int64_t but) {
    nvgpu::DeviceAsyncWaitOp::create(in, loc, group, in.getI32IntegerAttr(int32_t(but)));
    gpu::BarrierOp::create(in, loc);
  }

  /// All steps: while some are multiplied, the next ones are loaded into registers, and copies of those
  /// behind are on their way.
  SmallVector<Value> byCopies(OpBuilder &b, ValueRange sums) {
    Numbers at{b, loc};
    Value zero = at.of(0), one = at.of(1), last = at.of(stages - 1);
    // What is waited for are all groups but the last ones: the name of one does not matter.
    Value group = nvgpu::DeviceAsyncCreateGroupOp::create(
        b, loc, nvgpu::DeviceAsyncTokenType::get(b.getContext()), ValueRange());
    scf::ForOp::create(b, loc, zero, at.of(stages), one, ValueRange(),
                       [&](OpBuilder &in, Location, Value stage, ValueRange) {
                         start(in, Numbers{in, loc}.times(stage, steps), stage);
                         scf::YieldOp::create(in, loc);
                       });
    wait(b, group, stages - 1);
    SmallVector<Value> before{zero};
    llvm::append_range(before, sums);
    llvm::append_range(before, registers(b, zero, 0));
    auto along = scf::ForOp::create(
        b, loc, zero, tile.sizes[tile.product.depth], at.of(steps), before,
        [&](OpBuilder &in, Location, Value from, ValueRange sofar) {
          Value stage = sofar[0], next;
          SmallVector<Value> all(sofar.slice(1, sums.size())), factors(sofar.drop_front(1 + sums.size()));
          for (size_t part = 1; part <= kParts; ++part) {
            SmallVector<Value> following;
            if (part < kParts) {
              following = registers(in, stage, part);
            } else {
              wait(in, group, stages - 2);
              // All have read this stage: it is in registers.
              start(in, Numbers{in, loc}.plus(from, stages * steps), stage);
              Value isLast = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, stage, last);
              next = arith::SelectOp::create(in, loc, isLast, zero, Numbers{in, loc}.plus(stage, one));
              following = registers(in, next, 0);
            }
            all = multiply(in, factors, all);
            factors = following;
          }
          SmallVector<Value> after{next};
          llvm::append_range(after, all);
          llvm::append_range(after, factors);
          scf::YieldOp::create(in, loc, after);
        });
    return SmallVector<Value>(along.getResults().slice(1, sums.size()));
  }

  void put(OpBuilder &in, const TileFactor &of, Value to, Value stage, Value from, ValueRange pieces) {
    for (auto [number, value] : llvm::enumerate(pieces)) {
      TileFactor::Piece piece = of.piece(in, from, int64_t(number));
      vector::StoreOp::create(in, loc, value, to,
                              ValueRange{stage, piece.row, changed(in, of, piece.row, piece.column)}, false,
                              llvm::MaybeAlign(uint64_t(kPieceBytes)));
    }
  }

  /// All steps, of which the next ones are loaded into registers meanwhile.
  SmallVector<Value> byLoads(OpBuilder &b, ValueRange sums) {
    Numbers at{b, loc};
    Value zero = at.of(0);
    SmallVector<Value> before(sums), lefts = left.loaded(b, zero), rights = right.loaded(b, zero);
    llvm::append_range(before, lefts);
    llvm::append_range(before, rights);
    auto along = scf::ForOp::create(
        b, loc, zero, tile.sizes[tile.product.depth], at.of(steps), before,
        [&](OpBuilder &in, Location, Value from, ValueRange sofar) {
          put(in, left, ofLeft, zero, from, sofar.slice(sums.size(), lefts.size()));
          put(in, right, ofRight, zero, from, sofar.drop_front(sums.size() + lefts.size()));
          gpu::BarrierOp::create(in, loc);
          Value next = Numbers{in, loc}.plus(from, steps);
          SmallVector<Value> nextLefts = left.loaded(in, next), nextRights = right.loaded(in, next);
          SmallVector<Value> after(sofar.take_front(sums.size()));
          for (size_t part = 0; part < kParts; ++part)
            after = multiply(in, registers(in, zero, part), after);
          gpu::BarrierOp::create(in, loc);
          llvm::append_range(after, nextLefts);
          llvm::append_range(after, nextRights);
          scf::YieldOp::create(in, loc, after);
        });
    return SmallVector<Value>(along.getResults().take_front(sums.size()));
  }

  SmallVector<Value> allSteps(ArrayRef<Value> sums) {
    if (!left.isAligned || !right.isAligned)
      return byLoads(b, sums);
    Value areAligned = arith::AndIOp::create(b, loc, left.isAligned, right.isAligned);
    auto either = scf::IfOp::create(
        b, loc, areAligned,
        [&](OpBuilder &in, Location) { scf::YieldOp::create(in, loc, byCopies(in, sums)); },
        [&](OpBuilder &in, Location) { scf::YieldOp::create(in, loc, byLoads(in, sums)); });
    return SmallVector<Value>(either.getResults());
  }

  void store(ArrayRef<Value> sums) {
    Numbers at{b, loc};
    SmallVector<Value> exist;
    if (!tile.areAll(tile.product.column))
      for (Value column : columns)
        exist.push_back(at.isBelow(column, tile.sizes[tile.product.column]));
    for (auto [i, row] : llvm::enumerate(rows)) {
      OpBuilder ofRow = b;
      if (!tile.areAll(tile.product.row)) {
        Value exists = at.isBelow(row, tile.sizes[tile.product.row]);
        ofRow = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false).getThenBodyBuilder();
      }
      for (auto [j, column] : llvm::enumerate(columns)) {
        OpBuilder in = ofRow;
        if (!exist.empty())
          in = scf::IfOp::create(ofRow, loc, exist[j], /*withElseRegion=*/false).getThenBodyBuilder();
        Value sum = sums[i / 2 * size_t(across) + j / kPair];
        Value value =
            vector::ExtractOp::create(in, loc, sum, ArrayRef<int64_t>{int64_t(i % 2), int64_t(j % kPair)});
        Type element = cast<MemRefType>(tile.output().get().getType()).getElementType();
        if (element != word)
          value = arith::TruncFOp::create(in, loc, element, value);
        memref::StoreOp::create(in, loc, value, tile.output().get(), placeOfSum(in, row, column));
      }
    }
  }

  OpBuilder &b;
  Location loc;
  const BlockTile &tile;
  int64_t bytes;  // of an element of the factors
  int64_t depth;  // steps of a product
  int64_t steps;  // in a stage's memory
  int64_t stages; // of the block's memory
  TileFactor left, right;
  Value ofLeft, ofRight; // the block's memory
  int64_t down, across;  // products of a subgroup along the rows, the columns
  Value lane, firstRow, firstColumn;
  SmallVector<Place> lefts, rights;
  SmallVector<Value> rows, columns;
  Type word; // of the sums
};

} // namespace

void multiplyByRegisters(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile) {
  Tile(in, launch, tile).write();
}

} // namespace offload
