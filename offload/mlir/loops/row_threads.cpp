//===- row_threads.cpp - Threads that share out rows of memory ------------===//

#include "loops/row_threads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

void acrossRow(gpu::LaunchOp launch, OpBuilder &b, Location loc, MutableArrayRef<Value> values, Value lane,
               bool isBlock, function_ref<Value(unsigned, Value, Value)> join) {
  for (auto [i, value] : llvm::enumerate(values))
    value = acrossLanes(b, loc, value, [&](Value one, Value other) { return join(unsigned(i), one, other); });
  if (!isBlock)
    return;
  // What the subgroups of a block have goes through its memory.
  constexpr int64_t kSubgroups = kBlockLanes / kRowLanes;
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Value inSubgroup = arith::RemUIOp::create(b, loc, lane, index(kRowLanes));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, inSubgroup, index(0));
  SmallVector<Value> memory;
  for (Value value : values)
    memory.push_back(launch.addWorkgroupAttribution(
        MemRefType::get({kSubgroups}, value.getType(), MemRefLayoutAttrInterface(), space), loc));
  Value subgroup = arith::DivUIOp::create(b, loc, lane, index(kRowLanes));
  scf::IfOp::create(b, loc, isFirst, [&](OpBuilder &then, Location) {
    for (auto [value, held] : llvm::zip_equal(values, memory))
      memref::StoreOp::create(then, loc, value, held, subgroup);
    scf::YieldOp::create(then, loc);
  });
  gpu::BarrierOp::create(b, loc);
  for (auto [i, value, held] : llvm::enumerate(values, memory)) {
    value = memref::LoadOp::create(b, loc, held, index(0));
    for (int64_t other = 1; other < kSubgroups; ++other)
      value = join(unsigned(i), value, memref::LoadOp::create(b, loc, held, index(other)));
  }
}

} // namespace offload
