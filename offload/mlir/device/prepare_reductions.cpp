//===- prepare_reductions.cpp - all_reduce, subgroup_reduce ---------------===//
//
// A subgroup reduces in log2 steps, each lane taking the value of one further away. The last subgroup of a
// block may lack lanes; a step over its end is left out. For a block, each subgroup puts its result into
// workgroup memory and every thread reduces these few.
//
// Without `uniform` the dialect lets some threads stay away. What all threads reach, as their control flow
// shows, is reduced as if it were uniform. Elsewhere, subgroup_reduce is over the lanes that are there
// together, one after the other; all_reduce has no such meaning, because the threads of a block can wait only
// for all others.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace offload {
namespace {

using Predicate = arith::CmpIPredicate;
using Combine = function_ref<Value(OpBuilder &, Value, Value)>;

constexpr int64_t kMostThreads = 1024; // of a block, on every target

/// A cluster of lanes: `size` of them, `stride` apart.
struct Cluster {
  int64_t size, stride;
};

class Reducer {
public:
  /// `mayFail`: `combine` is the author's, must see only values that are there (it may divide), and may care
  /// for their order.
  Reducer(Operation *op, const Lanes &lanes, Combine combine, bool mayFail)
      : op(op), loc(op->getLoc()), lanes(lanes), combine(combine), mayFail(mayFail) {}

  Value overSubgroup(OpBuilder &b, Value value, Cluster cluster) {
    Value lane = lanes.lane(b, op);
    std::optional<int64_t> threads = knownThreads(op);
    if (threads && *threads % lanes.size == 0 && !mayFail)
      return crosswise(b, value, lane, cluster);
    Value place = placeIn(b, lane, cluster), present = presentLanes(b, lane);
    for (int64_t step = 1; step < cluster.size; step *= 2) {
      Value source = arith::AddIOp::create(b, loc, lane, constant32(b, loc, step * cluster.stride));
      Value there = arith::AddIOp::create(b, loc, place, constant32(b, loc, step));
      Value inside = arith::CmpIOp::create(b, loc, Predicate::ult, there, constant32(b, loc, cluster.size));
      there = arith::CmpIOp::create(b, loc, Predicate::ult, source, present);
      there = arith::AndIOp::create(b, loc, inside, there);
      Value other = read(b, value, arith::SelectOp::create(b, loc, there, source, lane), {});
      value = combineIf(b, there, value, other);
    }
    Value back = arith::MulIOp::create(b, loc, place, constant32(b, loc, cluster.stride));
    return read(b, value, arith::SubIOp::create(b, loc, lane, back), {});
  }

  /// Over the lanes that are here, in their order.
  Value overActive(OpBuilder &b, Value value, Cluster cluster) {
    Value lane = lanes.lane(b, op), active = lanes.active(b, op), place = placeIn(b, lane, cluster);
    Value back = arith::MulIOp::create(b, loc, place, constant32(b, loc, cluster.stride));
    Value first = arith::SubIOp::create(b, loc, lane, back);
    Value none = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 0);
    Value lower = constant32(b, loc, 0), upper = constant32(b, loc, cluster.size);
    Value step = constant32(b, loc, 1);
    auto loop = scf::ForOp::create(b, loc, lower, upper, step, ValueRange{value, none});
    OpBuilder in = OpBuilder::atBlockBegin(loop.getBody());
    Value total = loop.getRegionIterArg(0), started = loop.getRegionIterArg(1);
    Value source =
        arith::MulIOp::create(in, loc, loop.getInductionVar(), constant32(in, loc, cluster.stride));
    source = arith::AddIOp::create(in, loc, first, source);
    Value place64 = source;
    if (lanes.size == 64)
      place64 = arith::ExtUIOp::create(in, loc, in.getI64Type(), source);
    Value bit = arith::ShRUIOp::create(in, loc, active, place64);
    Value here = arith::TruncIOp::create(in, loc, in.getI1Type(), bit);
    Value other = read(in, value, arith::SelectOp::create(in, loc, here, source, lane), active);
    Value sum = combineIf(in, arith::AndIOp::create(in, loc, here, started), total, other);
    Value isFirst = arith::AndIOp::create(
        in, loc, here,
        arith::XOrIOp::create(in, loc, started, arith::ConstantIntOp::create(in, loc, in.getI1Type(), 1)));
    sum = arith::SelectOp::create(in, loc, isFirst, other, sum);
    started = arith::OrIOp::create(in, loc, started, here);
    scf::YieldOp::create(in, loc, ValueRange{sum, started});
    return loop.getResult(0);
  }

  Value overBlock(OpBuilder &b, Value value) {
    value = overSubgroup(b, value, {lanes.size, 1});
    std::optional<int64_t> threads = knownThreads(op);
    if (threads && *threads <= int64_t(lanes.size))
      return value;
    Type index = b.getIndexType();
    Value parts = partsMemory(b, value.getType());
    Value thread = linearThread(b, op), size = constant32(b, loc, lanes.size);
    Value lane = arith::RemUIOp::create(b, loc, thread, size);
    Value isFirst = arith::CmpIOp::create(b, loc, Predicate::eq, lane, constant32(b, loc, 0));
    auto store = scf::IfOp::create(b, loc, isFirst);
    OpBuilder in = store.getThenBodyBuilder();
    Value subgroup =
        arith::IndexCastUIOp::create(in, loc, index, arith::DivUIOp::create(in, loc, thread, size));
    memref::StoreOp::create(in, loc, value, parts, subgroup);

    gpu::BarrierOp::create(b, loc);
    auto number = [&](int64_t n) { return arith::ConstantIndexOp::create(b, loc, n); };
    Value all = blockThreads(b, op);
    all = arith::AddIOp::create(b, loc, all, constant32(b, loc, lanes.size - 1));
    Value count = arith::IndexCastUIOp::create(b, loc, index, arith::DivUIOp::create(b, loc, all, size));
    Value first = memref::LoadOp::create(b, loc, parts, ValueRange{number(0)});
    Value one = number(1);
    auto loop = scf::ForOp::create(b, loc, one, count, one, first);
    OpBuilder each = OpBuilder::atBlockBegin(loop.getBody());
    Value part = memref::LoadOp::create(each, loc, parts, loop.getInductionVar());
    scf::YieldOp::create(each, loc, combine(each, loop.getRegionIterArg(0), part));
    // The memory is used again by the next reduction.
    gpu::BarrierOp::create(b, loc);
    return loop.getResult(0);
  }

private:
  Value read(OpBuilder &b, Value value, Value source, Value set) {
    return throughWords(b, loc, lanes, value,
                        [&](Value word) { return lanes.read(b, op, word, source, set); });
  }

  Value placeIn(OpBuilder &b, Value lane, Cluster cluster) {
    if (cluster.stride > 1)
      lane = arith::DivUIOp::create(b, loc, lane, constant32(b, loc, cluster.stride));
    return arith::RemUIOp::create(b, loc, lane, constant32(b, loc, cluster.size));
  }

  /// All lanes are there: each takes the value of the lane across, and all have the result.
  Value crosswise(OpBuilder &b, Value value, Value lane, Cluster cluster) {
    bool across = lanes.readsAcross(gpu::ShuffleMode::XOR);
    for (int64_t step = cluster.stride; step < cluster.stride * cluster.size; step *= 2) {
      if (across) {
        Value other = throughWords(b, loc, lanes, value, [&](Value word) {
          return lanes.readAcross(b, op, word, gpu::ShuffleMode::XOR, unsigned(step));
        });
        value = combine(b, value, other);
        continue;
      }
      Value source = arith::XOrIOp::create(b, loc, lane, constant32(b, loc, step));
      value = combine(b, value, read(b, value, source, {}));
    }
    return value;
  }

  /// How many lanes the caller's subgroup has: all but in the block's last one.
  Value presentLanes(OpBuilder &b, Value lane) {
    Value size = constant32(b, loc, lanes.size);
    std::optional<int64_t> threads = knownThreads(op);
    if (threads && *threads % lanes.size == 0)
      return size;
    Value first = arith::SubIOp::create(b, loc, linearThread(b, op), lane);
    Value rest = arith::SubIOp::create(b, loc, blockThreads(b, op), first);
    return arith::MinUIOp::create(b, loc, rest, size);
  }

  Value combineIf(OpBuilder &b, Value condition, Value value, Value other) {
    if (!mayFail)
      return arith::SelectOp::create(b, loc, condition, combine(b, value, other), value);
    auto branch = scf::IfOp::create(b, loc, TypeRange{value.getType()}, condition, /*withElseRegion=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, combine(then, value, other));
    scf::YieldOp::create(otherwise, loc, value);
    return branch.getResult(0);
  }

  /// Workgroup memory for one value per subgroup of a block; one for all reductions of a type, whose barriers
  /// keep them apart.
  Value partsMemory(OpBuilder &b, Type element) {
    auto module = op->getParentOfType<gpu::GPUModuleOp>();
    auto space = gpu::AddressSpaceAttr::get(op->getContext(), gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get({kMostThreads / lanes.size}, element, MemRefLayoutAttrInterface(), space);
    std::string name;
    llvm::raw_string_ostream(name) << "__offload_parts_" << element;
    if (!module.lookupSymbol(name)) {
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      memref::GlobalOp::create(top, module.getLoc(), name, top.getStringAttr("private"), type,
                               UnitAttr::get(b.getContext()),
                               /*constant=*/false, /*alignment=*/IntegerAttr());
    }
    return memref::GetGlobalOp::create(b, loc, type, name);
  }

  Operation *op;
  Location loc;
  const Lanes &lanes;
  Combine combine;
  bool mayFail;
};

/// The author's operation in blocks of its own, for two values.
Value inRegion(OpBuilder &b, gpu::AllReduceOp op, Value left, Value right) {
  auto region = scf::ExecuteRegionOp::create(b, op.getLoc(), op.getType());
  IRMapping map;
  op.getBody().cloneInto(&region.getRegion(), map);
  Block &entry = region.getRegion().front();
  for (auto [argument, value] : llvm::zip_equal(entry.getArguments(), ValueRange{left, right}))
    argument.replaceAllUsesWith(value);
  entry.eraseArguments(0, entry.getNumArguments());
  for (auto yield : llvm::make_early_inc_range(region.getRegion().getOps<gpu::YieldOp>())) {
    OpBuilder at(yield);
    scf::YieldOp::create(at, yield.getLoc(), yield.getOperands());
    yield.erase();
  }
  return region.getResult(0);
}

LogicalResult lower(gpu::AllReduceOp op, const Lanes &lanes, bool together) {
  if (!together)
    return op.emitOpError(
        "may not be reached by all threads of the block, and there is no value of those that stay "
        "away: move it out of what depends on the thread, or mark it 'uniform' if all threads do "
        "reach it");
  OpBuilder b(op);
  Region &body = op.getBody();
  auto own = [&](OpBuilder &to, Value left, Value right) -> Value {
    IRMapping map;
    if (!body.hasOneBlock())
      return inRegion(to, op, left, right);
    map.map(body.front().getArguments(), ValueRange{left, right});
    for (Operation &inside : body.front().without_terminator())
      to.clone(inside, map);
    return map.lookupOrDefault(body.front().getTerminator()->getOperand(0));
  };
  auto named = [&](OpBuilder &to, Value left, Value right) {
    return vector::makeArithReduction(to, op.getLoc(), gpu::convertReductionKind(*op.getOp()), left, right);
  };
  Value result = op.getOp() ? Reducer(op, lanes, named, /*mayFail=*/false).overBlock(b, op.getValue())
                            : Reducer(op, lanes, own, /*mayFail=*/true).overBlock(b, op.getValue());
  op.getResult().replaceAllUsesWith(result);
  op.erase();
  return success();
}

LogicalResult lower(gpu::SubgroupReduceOp op, const Lanes &lanes, bool together) {
  Cluster cluster{op.getClusterSize().value_or(lanes.size), op.getClusterStride()};
  if (cluster.size * cluster.stride > lanes.size)
    return op.emitOpError() << "has clusters of " << cluster.size << " lanes " << cluster.stride
                            << " apart, but the subgroups of this target have " << lanes.size << " threads";
  // As the targets' lowerings know it: what is shown is said, and a cluster of all lanes is the subgroup.
  std::optional<int64_t> threads = knownThreads(op);
  if (together && threads && *threads % lanes.size == 0)
    op.setUniform(true);
  if (op.getClusterSize() == lanes.size)
    op.removeClusterSizeAttr();
  if (lanes.reduces(op))
    return success();
  OpBuilder b(op);
  auto combine = [&](OpBuilder &to, Value left, Value right) {
    return vector::makeArithReduction(to, op.getLoc(), gpu::convertReductionKind(op.getOp()), left, right);
  };
  Reducer reducer(op, lanes, combine, /*mayFail=*/false);
  Value result = together ? reducer.overSubgroup(b, op.getValue(), cluster)
                          : reducer.overActive(b, op.getValue(), cluster);
  op.getResult().replaceAllUsesWith(result);
  op.erase();
  return success();
}

} // namespace

LogicalResult lowerReductions(gpu::GPUModuleOp module, const Lanes &lanes) {
  // Whether threads reach an operation is asked of the program as it was written.
  SmallVector<std::pair<Operation *, bool>> found;
  module.walk([&](Operation *op) {
    if (auto all = dyn_cast<gpu::AllReduceOp>(op))
      found.push_back({op, all.getUniform() || everyThreadReaches(op)});
    else if (auto subgroup = dyn_cast<gpu::SubgroupReduceOp>(op))
      found.push_back({op, subgroup.getUniform() || everyThreadReaches(op)});
  });
  for (auto [op, together] : found) {
    auto all = dyn_cast<gpu::AllReduceOp>(op);
    if (failed(all ? lower(all, lanes, together) : lower(cast<gpu::SubgroupReduceOp>(op), lanes, together)))
      return failure();
  }
  return success();
}

} // namespace offload
