//===- row_threads.cpp - Threads that share out rows of memory ------------===//

#include "loops/row_threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace offload {

bool canBeHandedOn(Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isInteger(32) || type.isInteger(64) ||
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

static Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

static RowThreads launchRows(OpBuilder &b, Location loc, Value rows, bool areLong) {
  int64_t lanes = areLong ? kLongRowLanes : kRowLanes, together = areLong ? 1 : kRowsOfBlock;
  Value one = index(b, loc, 1),
        blocks = b.createOrFold<arith::CeilDivUIOp>(loc, rows, index(b, loc, together));
  Value wide = index(b, loc, lanes), high = index(b, loc, together);
  auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, wide, high, one);
  OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
  Value first = arith::MulIOp::create(in, loc, launch.getBlockIds().x, index(in, loc, together));
  Value row = arith::AddIOp::create(in, loc, first, launch.getThreadIds().y);
  Value exists = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, row, rows);
  gpu::TerminatorOp::create(in, loc);
  return {launch, launch.getThreadIds().x, row, exists, lanes, together};
}

RowThreads launchSubgroups(OpBuilder &b, Location loc, Value rows) {
  return launchRows(b, loc, rows, /*areLong=*/false);
}

void launchRows(OpBuilder &b, Location loc, Value rows, Value steps, int64_t isLong,
                function_ref<void(RowThreads)> write) {
  auto bySubgroups = [&] { write(launchSubgroups(b, loc, rows)); };
  auto byBlocks = [&] { write(launchRows(b, loc, rows, /*areLong=*/true)); };
  whereLeast(b, loc, rows, kManyRows, bySubgroups,
             [&] { whereLeast(b, loc, steps, isLong, byBlocks, bySubgroups); });
}

void whereLeast(OpBuilder &b, Location loc, Value number, int64_t least, function_ref<void()> enough,
                function_ref<void()> otherwise) {
  Value isEnough =
      b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, number, index(b, loc, least));
  if (std::optional<int64_t> known = getConstantIntValue(isEnough))
    return *known ? enough() : otherwise();
  auto either = scf::IfOp::create(b, loc, isEnough, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(either.thenBlock());
  enough();
  b.setInsertionPointToStart(either.elseBlock());
  otherwise();
}

Value memoryOfBlock(gpu::LaunchOp launch, ArrayRef<int64_t> shape, Type element) {
  auto space = gpu::AddressSpaceAttr::get(launch.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
  return launch.addWorkgroupAttribution(type, launch.getLoc());
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

Value RowThreads::joined(OpBuilder &b, Location loc, Value value, function_ref<Value(Value, Value)> join) {
  for (int32_t offset = kRowLanes / 2; offset > 0; offset /= 2) {
    auto other = gpu::ShuffleOp::create(b, loc, value, offset, kRowLanes, gpu::ShuffleMode::XOR);
    value = join(value, other.getShuffleResult());
  }
  if (lanes == kRowLanes)
    return value;
  // What the subgroups have goes through memory of the block.
  Value memory = memoryOfBlock(launch, {lanes / kRowLanes}, value.getType());
  Value subgroup = arith::DivUIOp::create(b, loc, lane, index(b, loc, kRowLanes));
  Value inSubgroup = arith::RemUIOp::create(b, loc, lane, index(b, loc, kRowLanes));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, inSubgroup, index(b, loc, 0));
  scf::IfOp::create(b, loc, isFirst, [&](OpBuilder &then, Location) {
    memref::StoreOp::create(then, loc, value, memory, subgroup);
    scf::YieldOp::create(then, loc);
  });
  gpu::BarrierOp::create(b, loc);
  value = memref::LoadOp::create(b, loc, memory, index(b, loc, 0));
  for (int64_t other = 1; other < lanes / kRowLanes; ++other)
    value = join(value, memref::LoadOp::create(b, loc, memory, index(b, loc, other)));
  return value;
}

} // namespace offload
