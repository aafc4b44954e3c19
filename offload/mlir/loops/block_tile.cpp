//===- block_tile.cpp - How a block brings what its tile needs ------------===//

#include "loops/block_tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {

static constexpr int64_t kPieceBytes = 16; // what a thread loads at once at most

Value Numbers::of(int64_t value) const { return arith::ConstantIndexOp::create(b, loc, value); }

Value Numbers::plus(Value one, Value other) const { return b.createOrFold<arith::AddIOp>(loc, one, other); }

Value Numbers::times(Value one, int64_t by) const { return b.createOrFold<arith::MulIOp>(loc, one, of(by)); }

Value Numbers::over(Value one, int64_t by) const { return b.createOrFold<arith::DivUIOp>(loc, one, of(by)); }

Value Numbers::rest(Value one, int64_t by) const { return b.createOrFold<arith::RemUIOp>(loc, one, of(by)); }

Value Numbers::isBelow(Value one, Value other) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, one, other);
}

OpOperand &BlockTile::output() const { return *op.getDpsInitOperand(0); }

bool BlockTile::areAll(unsigned loop) const {
  int64_t range = op.getStaticLoopRanges()[loop];
  return !ShapedType::isDynamic(range) && range % side == 0;
}

OpBuilder BlockTile::whereItIs(OpBuilder &in, ValueRange iteration, unsigned loop) const {
  if (areAll(loop))
    return in;
  Value exists = Numbers{in, loc()}.isBelow(iteration[loop], sizes[loop]);
  return scf::IfOp::create(in, loc(), exists, /*withElseRegion=*/false).getThenBodyBuilder();
}

Value BlockTile::thread(OpBuilder &in) const {
  Numbers at{in, loc()};
  return at.plus(at.times(y, kTileThreads), x);
}

Value areMultiples(OpBuilder &in, Location loc, Value memory, int64_t bytes) {
  auto type = cast<MemRefType>(memory.getType());
  int64_t ofElement = type.getElementTypeBitWidth() / 8;
  Numbers at{in, loc};
  auto parts = memref::ExtractStridedMetadataOp::create(in, loc, memory);
  Value bits = memref::ExtractAlignedPointerAsIndexOp::create(in, loc, memory);
  auto add = [&](Value elements) {
    bits = arith::OrIOp::create(in, loc, bits, at.times(elements, ofElement));
  };
  add(parts.getOffset());
  for (Value stride : parts.getStrides().drop_back())
    add(stride);
  Value rest = arith::AndIOp::create(in, loc, bits, at.of(bytes - 1));
  return arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, rest, at.of(0));
}

TileFactor::TileFactor(OpBuilder &in, const BlockTile &tile, OpOperand *input, unsigned own, int64_t depth)
    : tile(tile), input(input), own(own), depth(depth), alongOwn(loopAlong(*input) == own) {
  Location loc = tile.loc();
  int64_t bytes = memory().getElementTypeBitWidth() / 8, threads = kTileThreads * kTileThreads;
  width = std::min(kPieceBytes / bytes, tile.side * depth / threads);
  pieces = tile.side * depth / threads / width;
  Numbers at{in, loc};
  Value thread = tile.thread(in);
  row = at.over(thread, columns() / width);
  column = at.times(at.rest(thread, columns() / width), width);
  AffineMap map = cast<linalg::LinalgOp>(input->getOwner()).getMatchingIndexingMap(input);
  bool areRows = loopAlong(*input) == (alongOwn ? own : tile.product.depth);
  if (areRows && map.getDimPosition(map.getNumResults() - 1) == *loopAlong(*input))
    isAligned = areMultiples(in, loc, input->get(), width * bytes);
}

TileFactor::Piece TileFactor::piece(OpBuilder &in, Value from, int64_t number, bool allSteps) const {
  Location loc = tile.loc();
  Numbers at{in, loc};
  unsigned steps = tile.product.depth;
  int64_t threads = kTileThreads * kTileThreads;
  Piece found{at.plus(row, number * (threads / (columns() / width))), column, tile.first, Value()};
  found.iteration[own] = at.plus(tile.first[own], alongOwn ? found.column : found.row);
  found.iteration[steps] = at.plus(from, alongOwn ? found.row : found.column);
  unsigned along = alongOwn ? own : steps, across = alongOwn ? steps : own;
  Value all = at.of(width), none = at.of(0);
  auto isLimited = [&](unsigned loop) { return loop == steps ? !allSteps : !tile.areAll(own); };
  if (isLimited(along)) {
    Value left = arith::SubIOp::create(in, loc, tile.sizes[along], found.iteration[along]);
    found.count = arith::MaxSIOp::create(in, loc, arith::MinSIOp::create(in, loc, left, all), none);
  }
  if (isLimited(across)) {
    Value exists = at.isBelow(found.iteration[across], tile.sizes[across]);
    found.count = arith::SelectOp::create(in, loc, exists, found.count ? found.count : all, none);
  }
  return found;
}

Value TileFactor::gathered(OpBuilder &in, const Piece &piece) const {
  Location loc = tile.loc();
  Numbers at{in, loc};
  unsigned along = alongOwn ? own : tile.product.depth;
  // Where there is no such element, the last one is loaded, and is not used.
  SmallVector<Value> iteration = piece.iteration, elements;
  auto within = [&](unsigned loop, Value number) -> Value {
    Value last = arith::SubIOp::create(in, loc, tile.sizes[loop], at.of(1));
    return arith::MinUIOp::create(in, loc, number, last);
  };
  for (unsigned loop : {own, tile.product.depth})
    iteration[loop] = within(loop, piece.iteration[loop]);
  Value zero = arith::ConstantOp::create(in, loc, in.getZeroAttr(element()));
  for (int64_t i = 0; i < width; ++i) {
    iteration[along] = within(along, at.plus(piece.iteration[along], i));
    Value value = memref::LoadOp::create(in, loc, input->get(), placeOf(in, *input, iteration));
    if (piece.count)
      value = arith::SelectOp::create(in, loc, at.isBelow(at.of(i), piece.count), value, zero);
    elements.push_back(value);
  }
  return vector::FromElementsOp::create(in, loc, VectorType::get(width, element()), elements);
}

SmallVector<Value> TileFactor::loaded(OpBuilder &in, Value from) const {
  Location loc = tile.loc();
  SmallVector<Value> found;
  for (int64_t number = 0; number < pieces; ++number) {
    Piece each = piece(in, from, number);
    if (!isAligned) {
      found.push_back(gathered(in, each));
      continue;
    }
    Value isWhole = isAligned;
    if (each.count) {
      Value areAll =
          arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, each.count, Numbers{in, loc}.of(width));
      isWhole = arith::AndIOp::create(in, loc, isWhole, areAll);
    }
    auto type = VectorType::get(width, element());
    auto choice = scf::IfOp::create(
        in, loc, isWhole,
        [&](OpBuilder &at, Location) {
          llvm::MaybeAlign alignment(uint64_t(type.getNumElements() * memory().getElementTypeBitWidth() / 8));
          Value piece = vector::LoadOp::create(at, loc, type, input->get(),
                                               placeOf(at, *input, each.iteration), false, alignment);
          scf::YieldOp::create(at, loc, piece);
        },
        [&](OpBuilder &at, Location) { scf::YieldOp::create(at, loc, gathered(at, each)); });
    found.push_back(choice.getResult(0));
  }
  return found;
}

} // namespace offload
