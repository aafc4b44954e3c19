//===- row_threads.cpp - Threads that share out rows of memory ------------===//

#include "loops/row_threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace offload {

bool canBeHandedOn(Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isInteger(32) || type.isInteger(64) ||
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

RowThreads launchRows(OpBuilder &b, Location loc, Value rows, int64_t lanes, int64_t together) {
  auto index = [&](OpBuilder &at, int64_t value) { return arith::ConstantIndexOp::create(at, loc, value); };
  Value one = index(b, 1), blocks = b.createOrFold<arith::CeilDivUIOp>(loc, rows, index(b, together));
  auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, index(b, lanes), index(b, together), one);
  OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
  Value first = arith::MulIOp::create(in, loc, launch.getBlockIds().x, index(in, together));
  Value row = arith::AddIOp::create(in, loc, first, launch.getThreadIds().y);
  Value exists = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, row, rows);
  gpu::TerminatorOp::create(in, loc);
  return {launch, launch.getThreadIds().x, row, exists};
}

SmallVector<Value> placeOfRow(OpBuilder &b, Location loc, Value row, ArrayRef<Value> sizes) {
  SmallVector<Value> place(sizes.size());
  for (unsigned i = unsigned(sizes.size()); i-- > 0;) {
    place[i] = i ? arith::RemUIOp::create(b, loc, row, sizes[i]).getResult() : row;
    if (i)
      row = arith::DivUIOp::create(b, loc, row, sizes[i]);
  }
  return place;
}

Value acrossLanes(OpBuilder &b, Location loc, Value value, function_ref<Value(Value, Value)> join) {
  for (int32_t offset = kRowLanes / 2; offset > 0; offset /= 2) {
    auto other = gpu::ShuffleOp::create(b, loc, value, offset, kRowLanes, gpu::ShuffleMode::XOR);
    value = join(value, other.getShuffleResult());
  }
  return value;
}

} // namespace offload
