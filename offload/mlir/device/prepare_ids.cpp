//===- prepare_ids.cpp - Ids and sizes that follow from others ------------===//
//
// subgroup_id, num_subgroups and subgroup_size follow from the block and the target's subgroups; global_id
// from block and thread; and where a target has no clusters, each block is one.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

std::optional<ArrayRef<int32_t>> knownBlockSize(Operation *anchor) {
  auto function = anchor->getParentOfType<FunctionOpInterface>();
  DenseI32ArrayAttr known;
  if (auto kernel = dyn_cast_or_null<gpu::GPUFuncOp>(function ? function.getOperation() : nullptr))
    known = kernel.getKnownBlockSizeAttr();
  if (!known && function)
    known = function->getAttrOfType<DenseI32ArrayAttr>("gpu.known_block_size");
  if (!known || known.size() != 3)
    return std::nullopt;
  return known.asArrayRef();
}

static Value toI32(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), index);
}

Value blockSize(OpBuilder &b, Operation *anchor, gpu::Dimension axis) {
  Location loc = anchor->getLoc();
  if (auto known = knownBlockSize(anchor))
    return constant32(b, loc, (*known)[unsigned(axis)]);
  return toI32(b, loc, gpu::BlockDimOp::create(b, loc, axis));
}

std::optional<int64_t> knownThreads(Operation *anchor) {
  auto known = knownBlockSize(anchor);
  if (!known)
    return std::nullopt;
  return int64_t((*known)[0]) * (*known)[1] * (*known)[2];
}

Value blockThreads(OpBuilder &b, Operation *anchor) {
  Location loc = anchor->getLoc();
  if (auto known = knownThreads(anchor))
    return constant32(b, loc, *known);
  Value row = blockSize(b, anchor, gpu::Dimension::x);
  Value plane = arith::MulIOp::create(b, loc, row, blockSize(b, anchor, gpu::Dimension::y));
  return arith::MulIOp::create(b, loc, plane, blockSize(b, anchor, gpu::Dimension::z));
}

Value linearThread(OpBuilder &b, Operation *anchor) {
  Location loc = anchor->getLoc();
  auto thread = [&](gpu::Dimension axis) { return toI32(b, loc, gpu::ThreadIdOp::create(b, loc, axis)); };
  Value row = thread(gpu::Dimension::z);
  row = arith::MulIOp::create(b, loc, row, blockSize(b, anchor, gpu::Dimension::y));
  row = arith::AddIOp::create(b, loc, row, thread(gpu::Dimension::y));
  row = arith::MulIOp::create(b, loc, row, blockSize(b, anchor, gpu::Dimension::x));
  return arith::AddIOp::create(b, loc, row, thread(gpu::Dimension::x));
}

/// Replaces an id by an i32 or index, through `make`.
template <typename Op>
static void replaceAll(gpu::GPUModuleOp module, function_ref<Value(OpBuilder &, Op)> make) {
  module.walk([&](Op op) {
    OpBuilder b(op);
    Value value = make(b, op);
    if (!value.getType().isIndex())
      value = arith::IndexCastUIOp::create(b, op.getLoc(), b.getIndexType(), value);
    op.getResult().replaceAllUsesWith(value);
    op.erase();
  });
}

LogicalResult lowerIds(gpu::GPUModuleOp module, const Lanes &lanes) {
  int64_t size = lanes.size;
  replaceAll<gpu::SubgroupSizeOp>(
      module, [&](OpBuilder &b, gpu::SubgroupSizeOp op) { return constant32(b, op.getLoc(), size); });
  replaceAll<gpu::SubgroupIdOp>(module, [&](OpBuilder &b, gpu::SubgroupIdOp op) -> Value {
    Value thread = linearThread(b, op);
    return arith::DivUIOp::create(b, op.getLoc(), thread, constant32(b, op.getLoc(), size));
  });
  replaceAll<gpu::NumSubgroupsOp>(module, [&](OpBuilder &b, gpu::NumSubgroupsOp op) -> Value {
    Location loc = op.getLoc();
    Value threads = blockThreads(b, op);
    Value rounded = arith::AddIOp::create(b, loc, threads, constant32(b, loc, size - 1));
    return arith::DivUIOp::create(b, loc, rounded, constant32(b, loc, size));
  });
  // 64 bits: a grid may have more threads along an axis than 32 bits can count.
  replaceAll<gpu::GlobalIdOp>(module, [&](OpBuilder &b, gpu::GlobalIdOp op) -> Value {
    Location loc = op.getLoc();
    gpu::Dimension axis = op.getDimension();
    Value block = gpu::BlockIdOp::create(b, loc, axis);
    Value first = arith::MulIOp::create(b, loc, block, gpu::BlockDimOp::create(b, loc, axis));
    return arith::AddIOp::create(b, loc, first, gpu::ThreadIdOp::create(b, loc, axis));
  });
  if (lanes.hasClusters())
    return success();
  replaceAll<gpu::ClusterDimOp>(module, [&](OpBuilder &b, gpu::ClusterDimOp op) -> Value {
    return gpu::GridDimOp::create(b, op.getLoc(), op.getDimension());
  });
  replaceAll<gpu::ClusterIdOp>(module, [&](OpBuilder &b, gpu::ClusterIdOp op) -> Value {
    return gpu::BlockIdOp::create(b, op.getLoc(), op.getDimension());
  });
  replaceAll<gpu::ClusterDimBlocksOp>(
      module, [&](OpBuilder &b, gpu::ClusterDimBlocksOp op) { return constant32(b, op.getLoc(), 1); });
  replaceAll<gpu::ClusterBlockIdOp>(
      module, [&](OpBuilder &b, gpu::ClusterBlockIdOp op) { return constant32(b, op.getLoc(), 0); });
  return success();
}

} // namespace offload
