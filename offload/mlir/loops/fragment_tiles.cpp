//===- fragment_tiles.cpp - Tiles of gpu.subgroup_mma -----------------------===//
//
// A block's tile of a product for matrix units of all kinds: each subgroup has some of the fragments of
// gpu.subgroup_mma that the tile consists of, whose sums are words. What the next steps need is loaded into
// registers while these are multiplied, and goes into the block's memory after them.
//
// Which elements of a fragment a thread has is not known here, so sums go through the block's memory, a part
// of the tile at a time: threads add them to the output.
//
//===----------------------------------------------------------------------===//

#include "loops/block_tile.h"
#include "names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kSteps = 32;    // in the block's memory
constexpr int64_t kFragment = 16; // rows and columns of a fragment
// Columns more, which keep rows in different banks, and where fragments want them: PTX, "Matrix Storage for
// WMMA", asks for multiples of a fragment's bytes in a thread, 32 at most.
constexpr int64_t kFactorPadding = 16, kWordPadding = 8;
constexpr int64_t kAcross = 2; // subgroups that share a row of the tile
constexpr int64_t kPart = 64;  // rows and columns of the tile whose sums are in the block's memory at a time

class Tile {
public:
  Tile(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile, int64_t subgroup)
      : b(in), loc(tile.loc()), tile(tile), left(in, tile, tile.product.left, tile.product.row, kSteps),
        right(in, tile, tile.product.right, tile.product.column, kSteps), ofLeft(memoryOf(launch, left)),
        ofRight(memoryOf(launch, right)), down(kTileThreads * kTileThreads / subgroup / kAcross),
        ownRows(tile.side / kFragment / down), ownColumns(tile.side / kFragment / kAcross) {
    Type held = heldAs(left.element()), word = in.getF32Type(), factor = held;
    if (held.isInteger()) {
      word = in.getI32Type();
      factor = IntegerType::get(in.getContext(), held.getIntOrFloatBitWidth(), IntegerType::Signed);
    }
    products = memoryOf(launch, {kPart, kPart + kWordPadding}, word);
    auto fragment = [&](Type element, StringRef use) {
      return gpu::MMAMatrixType::get({kFragment, kFragment}, element, use);
    };
    leftType = fragment(factor, "AOp");
    rightType = fragment(factor, "BOp");
    sumType = fragment(word, "COp");
  }

  void write() {
    Numbers at{b, loc};
    // The subgroup's fragments begin at this row and column of the tile.
    Value id = gpu::SubgroupIdOp::create(b, loc, IntegerAttr());
    row = at.times(at.over(id, kAcross), ownRows * kFragment);
    column = at.times(at.rest(id, kAcross), ownColumns * kFragment);
    SmallVector<Value> sums = loop();
    for (int64_t i = 0; i < tile.side; i += kPart)
      for (int64_t j = 0; j < tile.side; j += kPart) {
        if (i || j)
          gpu::BarrierOp::create(b, loc); // what was there before has been read
        handOn(sums, i, j);
        gpu::BarrierOp::create(b, loc);
        addToOutput(i, j);
      }
  }

private:
  /// What the block's memory holds elements as: fragments are not of bfloats.
  static Type heldAs(Type element) {
    return element.isBF16() ? Type(Float16Type::get(element.getContext())) : element;
  }
  static Value memoryOf(gpu::LaunchOp launch, ArrayRef<int64_t> shape, Type element) {
    auto space = gpu::AddressSpaceAttr::get(launch.getContext(), gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
    return launch.addWorkgroupAttribution(type, launch.getLoc());
  }
  static Value memoryOf(gpu::LaunchOp launch, const TileFactor &of) {
    return memoryOf(launch, {of.rows(), of.columns() + kFactorPadding}, heldAs(of.element()));
  }

  void put(OpBuilder &in, const TileFactor &of, Value to, Value from, ValueRange pieces) {
    for (auto [number, value] : llvm::enumerate(pieces)) {
      TileFactor::Piece piece = of.piece(in, from, int64_t(number));
      int64_t bytes = of.width * of.memory().getElementTypeBitWidth() / 8;
      auto type = VectorType::get(of.width, heldAs(of.element()));
      Value held =
          value.getType() == type ? value : vector::BitCastOp::create(in, loc, type, value).getResult();
      vector::StoreOp::create(in, loc, held, to, ValueRange{piece.row, piece.column}, false,
                              llvm::MaybeAlign(uint64_t(bytes)));
    }
  }

  /// Whether a factor lies in memory otherwise than a fragment of it: rows of the left one are its own
  /// loop's.
  UnitAttr transposed(const TileFactor &of) const {
    bool is = of.alongOwn == (of.own == tile.product.row);
    return is ? UnitAttr::get(b.getContext()) : UnitAttr();
  }

  Value load(OpBuilder &in, const TileFactor &from, Value memory, gpu::MMAMatrixType type, Value own,
             int64_t step) {
    Value along = Numbers{in, loc}.of(step);
    return gpu::SubgroupMmaLoadMatrixOp::create(
        in, loc, type, memory, from.alongOwn ? ValueRange{along, own} : ValueRange{own, along},
        b.getIndexAttr(cast<MemRefType>(memory.getType()).getDimSize(1)), transposed(from));
  }

  SmallVector<Value> loop() {
    Numbers at{b, loc};
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sumType.getElementType()));
    SmallVector<Value> before(size_t(ownRows * ownColumns),
                              gpu::SubgroupMmaConstantMatrixOp::create(b, loc, sumType, zero));
    size_t sums = before.size(), lefts = size_t(left.pieces);
    llvm::append_range(before, left.loaded(b, at.of(0)));
    llvm::append_range(before, right.loaded(b, at.of(0)));
    auto along = scf::ForOp::create(b, loc, at.of(0), tile.sizes[tile.product.depth], at.of(kSteps), before,
                                    [&](OpBuilder &in, Location, Value from, ValueRange sofar) {
                                      put(in, left, ofLeft, from, sofar.slice(sums, lefts));
                                      put(in, right, ofRight, from, sofar.drop_front(sums + lefts));
                                      gpu::BarrierOp::create(in, loc);
                                      Value next = Numbers{in, loc}.plus(from, kSteps);
                                      SmallVector<Value> nextLefts = left.loaded(in, next),
                                                         nextRights = right.loaded(in, next);
                                      SmallVector<Value> after = multiply(in, sofar.take_front(sums));
                                      gpu::BarrierOp::create(in, loc);
                                      llvm::append_range(after, nextLefts);
                                      llvm::append_range(after, nextRights);
                                      scf::YieldOp::create(in, loc, after);
                                    });
    return SmallVector<Value>(along.getResults().take_front(sums));
  }

  SmallVector<Value> multiply(OpBuilder &in, ValueRange sofar) {
    Numbers at{in, loc};
    SmallVector<Value> sums(sofar);
    for (int64_t step = 0; step < kSteps; step += kFragment) {
      SmallVector<Value> lefts, rights;
      for (int64_t i = 0; i < ownRows; ++i)
        lefts.push_back(load(in, left, ofLeft, leftType, at.plus(row, i * kFragment), step));
      for (int64_t j = 0; j < ownColumns; ++j)
        rights.push_back(load(in, right, ofRight, rightType, at.plus(column, j * kFragment), step));
      for (auto [number, sum] : llvm::enumerate(sums)) {
        auto product = gpu::SubgroupMmaComputeOp::create(in, loc, sumType, lefts[number / size_t(ownColumns)],
                                                         rights[number % size_t(ownColumns)], sum,
                                                         transposed(left), transposed(right));
        if (left.element().isBF16())
          product->setAttr(kBFloats, in.getUnitAttr());
        sum = product;
      }
    }
    return sums;
  }

  /// Puts sums into the block's memory: of the subgroups whose fragments are in this part of the tile.
  void handOn(ArrayRef<Value> sums, int64_t i, int64_t j) {
    Numbers at{b, loc};
    OpBuilder in = b;
    if (tile.side > kPart) { // a subgroup's fragments are all in one
      auto isIn = [&](Value place, int64_t first) -> Value {
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at.over(place, kPart),
                                     at.of(first / kPart));
      };
      Value own = arith::AndIOp::create(b, loc, isIn(row, i), isIn(column, j));
      in = scf::IfOp::create(b, loc, own, /*withElseRegion=*/false).getThenBodyBuilder();
    }
    Numbers then{in, loc};
    Value firstRow = then.rest(row, kPart), firstColumn = then.rest(column, kPart);
    for (auto [number, sum] : llvm::enumerate(sums))
      gpu::SubgroupMmaStoreMatrixOp::create(
          in, loc, sum, products,
          ValueRange{then.plus(firstRow, int64_t(number) / ownColumns * kFragment),
                     then.plus(firstColumn, int64_t(number) % ownColumns * kFragment)},
          b.getIndexAttr(kPart + kWordPadding), UnitAttr());
  }

  /// Each thread's elements of a part; neighbours have neighbouring threads.
  void addToOutput(int64_t i, int64_t j) {
    Numbers at{b, loc};
    SmallVector<Value> iteration = tile.first;
    unsigned ofRow = tile.product.row, ofColumn = tile.product.column;
    for (int64_t m = 0; m < kPart; m += kTileThreads) {
      Value ownRow = at.plus(tile.y, m);
      iteration[ofRow] = at.plus(tile.first[ofRow], at.plus(ownRow, i));
      OpBuilder inRow = tile.whereItIs(b, iteration, ofRow);
      for (int64_t n = 0; n < kPart; n += kTileThreads) {
        Numbers then{inRow, loc};
        Value ownColumn = then.plus(tile.x, n);
        iteration[ofColumn] = then.plus(tile.first[ofColumn], then.plus(ownColumn, j));
        OpBuilder in = tile.whereItIs(inRow, iteration, ofColumn);
        auto place = placeOf(in, tile.output(), iteration);
        addTo(in, place, memref::LoadOp::create(in, loc, products, ValueRange{ownRow, ownColumn}));
      }
    }
  }

  void addTo(OpBuilder &in, ArrayRef<Value> place, Value sum) {
    Value before = memref::LoadOp::create(in, loc, tile.output().get(), place), result;
    Type word = sum.getType();
    if (word.isInteger()) {
      result = arith::AddIOp::create(in, loc, before, sum);
    } else if (before.getType() == word) {
      result = arith::AddFOp::create(in, loc, before, sum);
    } else {
      result = arith::AddFOp::create(in, loc, arith::ExtFOp::create(in, loc, word, before), sum);
      result = arith::TruncFOp::create(in, loc, before.getType(), result);
    }
    memref::StoreOp::create(in, loc, result, tile.output().get(), place);
  }

  OpBuilder &b;
  Location loc;
  const BlockTile &tile;
  TileFactor left, right;
  Value ofLeft, ofRight, products; // the block's memory
  int64_t down;                    // subgroups that share a column of the tile
  int64_t ownRows, ownColumns;     // of fragments, of a subgroup
  gpu::MMAMatrixType leftType, rightType, sumType;
  Value row, column;
};

} // namespace

void multiplyByFragments(OpBuilder &in, gpu::LaunchOp launch, const BlockTile &tile, int64_t subgroup) {
  Tile(in, launch, tile, subgroup).write();
}

} // namespace offload
