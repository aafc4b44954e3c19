//===- prepare_shuffles.cpp - shuffle, rotate, subgroup_broadcast ---------===//
//
// Upstream's lowerings of shuffle differ between the vendors where the width is smaller than the subgroup,
// are wrong for `up` on both, and know no types but words. Here they mean what the dialect says, for every
// type: `valid` where the own lane and the lane to read from are among the first `width`. Lanes behind these
// get a value that the dialect leaves open: where it can be had, the one of their own segment of `width`
// lanes, so that code written for smaller subgroups works.
//
// AMD's own exchanges (swizzle_bitmode, permlane_swap) have a lowering for values of up to a word and of
// whole words; the others are cut into words here.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace offload {
namespace {

using Predicate = arith::CmpIPredicate;

/// Where a lane reads, whether that is what was asked for, and who takes part.
struct Source {
  Value lane, valid, set;
};

/// The first `width` lanes; a lane that is not `among` them is alone. Null where the target needs no sets.
Value setOf(OpBuilder &b, Location loc, const Lanes &lanes, Value lane, Value width, Value among) {
  if (!lanes.hasSets())
    return {};
  Value unused = arith::SubIOp::create(b, loc, constant32(b, loc, lanes.size), width);
  Value front = arith::ShRUIOp::create(b, loc, constant32(b, loc, -1), unused);
  Value own = arith::ShLIOp::create(b, loc, constant32(b, loc, 1), lane);
  return arith::SelectOp::create(b, loc, among, front, own);
}

LogicalResult checkWidth(Operation *op, const Lanes &lanes, int64_t width) {
  if (width > 0 && width <= int64_t(lanes.size))
    return success();
  return op->emitOpError() << "has a width of " << width << ", but the subgroups of this target have "
                           << lanes.size << " threads";
}

FailureOr<Source> sourceOf(OpBuilder &b, gpu::ShuffleOp op, const Lanes &lanes) {
  Location loc = op.getLoc();
  Value lane = lanes.lane(b, op), offset = op.getOffset(), width = op.getWidth();
  Value first = constant32(b, loc, 0), among;
  bool whole = false;
  if (std::optional<int64_t> known = getConstantIntValue(width)) {
    if (failed(checkWidth(op, lanes, *known)))
      return failure();
    whole = *known == int64_t(lanes.size);
    if (!whole && llvm::isPowerOf2_64(uint64_t(*known)) && !lanes.hasSets())
      first = arith::AndIOp::create(b, loc, lane, constant32(b, loc, -*known));
  }
  Value place = arith::SubIOp::create(b, loc, lane, first);
  switch (op.getMode()) {
  case gpu::ShuffleMode::XOR:
    place = arith::XOrIOp::create(b, loc, place, offset);
    break;
  case gpu::ShuffleMode::UP:
    place = arith::SubIOp::create(b, loc, place, offset);
    break;
  case gpu::ShuffleMode::DOWN:
    place = arith::AddIOp::create(b, loc, place, offset);
    break;
  case gpu::ShuffleMode::IDX:
    place = offset;
    break;
  }
  // Unsigned, which checks both ends.
  Value inside = arith::CmpIOp::create(b, loc, Predicate::ult, place, width);
  Value source = arith::AddIOp::create(b, loc, first, place);
  if (whole)
    return Source{arith::SelectOp::create(b, loc, inside, source, lane), inside, {}};
  among = arith::CmpIOp::create(b, loc, Predicate::ult, lane, width);
  Value valid = arith::AndIOp::create(b, loc, inside, among);
  Value reads = lanes.hasSets() ? valid : inside;
  return Source{arith::SelectOp::create(b, loc, reads, source, lane), valid,
                setOf(b, loc, lanes, lane, width, among)};
}

Source sourceOf(OpBuilder &b, gpu::RotateOp op, const Lanes &lanes) {
  Location loc = op.getLoc();
  int64_t width = op.getWidth();
  Value lane = lanes.lane(b, op);
  Value place = arith::AddIOp::create(b, loc, lane, constant32(b, loc, op.getOffset()));
  place = arith::AndIOp::create(b, loc, place, constant32(b, loc, width - 1));
  Value source =
      arith::OrIOp::create(b, loc, place, arith::AndIOp::create(b, loc, lane, constant32(b, loc, -width)));
  if (width == lanes.size)
    return {source, arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1), {}};
  Value valid = arith::CmpIOp::create(b, loc, Predicate::ult, lane, constant32(b, loc, width));
  if (!lanes.hasSets())
    return {source, valid, {}};
  return {arith::SelectOp::create(b, loc, valid, source, lane), valid,
          setOf(b, loc, lanes, lane, constant32(b, loc, width), valid)};
}

FailureOr<Value> readAll(OpBuilder &b, Operation *op, const Lanes &lanes, Value value, Value source,
                         Value set) {
  Value result = throughWords(b, op->getLoc(), lanes, value,
                              [&](Value word) { return lanes.read(b, op, word, source, set); });
  if (!result)
    return op->emitOpError() << "cannot exchange values of type " << value.getType()
                             << ": only numbers and vectors of numbers";
  return result;
}

LogicalResult lower(gpu::SubgroupBroadcastOp op, const Lanes &lanes) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value active = lanes.active(b, op), source = op.getLane();
  std::optional<int64_t> known;
  if (source)
    known = getConstantIntValue(source);
  if (known && (*known < 0 || *known >= int64_t(lanes.size)))
    return op.emitOpError() << "reads lane " << *known << ", but the subgroups of this target have "
                            << lanes.size << " threads";
  if (op.getBroadcastType() == gpu::BroadcastType::first_active_lane) {
    source = LLVM::CountTrailingZerosOp::create(b, loc, active.getType(), active, /*is_zero_poison=*/true);
    if (lanes.size == 64)
      source = arith::TruncIOp::create(b, loc, b.getI32Type(), source);
  }
  FailureOr<Value> result = readAll(b, op, lanes, op.getSrc(), source, active);
  if (failed(result))
    return failure();
  op.getResult().replaceAllUsesWith(*result);
  op.erase();
  return success();
}

/// What one instruction of the target reads, without the lane's number in a register: the offset is known,
/// and the width is the subgroup's. Null otherwise.
Value readAcross(OpBuilder &b, gpu::ShuffleOp op, const Lanes &lanes) {
  std::optional<int64_t> offset = getConstantIntValue(op.getOffset()),
                         width = getConstantIntValue(op.getWidth());
  if (!lanes.readsAcross(op.getMode()) || width != int64_t(lanes.size) || !offset || *offset < 0 ||
      *offset >= int64_t(lanes.size))
    return {};
  return throughWords(b, op.getLoc(), lanes, op.getValue(), [&](Value word) {
    return lanes.readAcross(b, op, word, op.getMode(), unsigned(*offset));
  });
}
Value readAcross(OpBuilder &, gpu::RotateOp, const Lanes &) { return {}; }

template <typename Op> LogicalResult replace(Op op, const Lanes &lanes, OpBuilder &b, const Source &source) {
  FailureOr<Value> result = readAcross(b, op, lanes);
  if (!*result)
    result = readAll(b, op, lanes, op.getValue(), source.lane, source.set);
  if (failed(result))
    return failure();
  op.getResult(0).replaceAllUsesWith(*result);
  op.getValid().replaceAllUsesWith(source.valid);
  op.erase();
  return success();
}

void exchangeWords(Operation *op, const Lanes &lanes) {
  OpBuilder b(op);
  Value result = throughWords(b, op->getLoc(), lanes, op->getOperand(0), [&](Value word) {
    Operation *exchange = b.clone(*op);
    exchange->setOperand(0, word);
    exchange->getResult(0).setType(word.getType());
    return exchange->getResult(0);
  });
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

} // namespace

LogicalResult lowerShuffles(gpu::GPUModuleOp module, const Lanes &lanes) {
  WalkResult walked = module.walk([&](Operation *any) {
    OpBuilder b(any);
    LogicalResult done = success();
    if (auto op = dyn_cast<gpu::ShuffleOp>(any)) {
      FailureOr<Source> source = sourceOf(b, op, lanes);
      done = failed(source) ? failure() : replace(op, lanes, b, *source);
    } else if (auto op = dyn_cast<gpu::RotateOp>(any)) {
      done = checkWidth(op, lanes, op.getWidth());
      if (succeeded(done))
        done = replace(op, lanes, b, sourceOf(b, op, lanes));
    } else if (auto op = dyn_cast<gpu::SubgroupBroadcastOp>(any)) {
      done = lower(op, lanes);
    } else if (lanes.exchangesWords(any)) {
      exchangeWords(any, lanes);
    }
    return failed(done) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace offload
