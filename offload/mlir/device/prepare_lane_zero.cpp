//===- prepare_lane_zero.cpp - warp_execute_on_lane_0 ---------------------===//
//
// The region becomes a branch that lane 0 takes. What goes in and out goes through exchanges between lanes:
// lane 0 gathers the parts of an operand that the lanes hold, and each lane gets its part of a result, or all
// of it where the types agree. Vectors are shared out along the dimensions in which the types differ.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

struct LaneZero {
  LaneZero(gpu::WarpExecuteOnLane0Op op, const Lanes &lanes) : op(op), loc(op.getLoc()), lanes(lanes) {}

  LogicalResult lower() {
    if (op.getWarpSize() != lanes.size)
      return op.emitOpError() << "is written for subgroups of " << op.getWarpSize()
                              << " threads, but those of this target have " << lanes.size;
    Block *body = op.getBody();
    Operation *yield = body->getTerminator();
    for (auto [part, whole] : llvm::zip_equal(op.getArgs(), body->getArguments()))
      if (failed(check(part.getType(), whole.getType())))
        return failure();
    for (auto [whole, part] : llvm::zip_equal(yield->getOperands(), op.getResults()))
      if (failed(check(part.getType(), whole.getType())))
        return failure();

    OpBuilder b(op);
    lane = lanes.lane(b, op);
    for (auto [part, whole] : llvm::zip_equal(op.getArgs(), body->getArguments()))
      whole.replaceAllUsesWith(part.getType() == whole.getType() ? part : gather(b, part, whole.getType()));
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, op.getLaneid(), zero);
    bool results = yield->getNumOperands() != 0;
    auto branch = scf::IfOp::create(b, loc, yield->getOperandTypes(), isFirst, /*withElseRegion=*/results);
    Block *then = branch.thenBlock();
    if (!then->empty())
      then->getTerminator()->erase();
    OpBuilder end = OpBuilder::atBlockEnd(body);
    scf::YieldOp::create(end, loc, yield->getOperands());
    yield->erase();
    then->getOperations().splice(then->end(), body->getOperations());
    if (results) {
      OpBuilder otherwise = branch.getElseBodyBuilder();
      SmallVector<Value> unused;
      for (Type type : branch.getResultTypes())
        unused.push_back(zeroOf(otherwise, type));
      scf::YieldOp::create(otherwise, loc, unused);
    }
    for (auto [whole, part] : llvm::zip_equal(branch.getResults(), op.getResults()))
      part.replaceAllUsesWith(whole.getType() == part.getType() ? read(b, whole, constant32(b, loc, 0))
                                                                : scatter(b, whole, part.getType()));
    op.erase();
    return success();
  }

private:
  static bool isExchanged(Type type) {
    if (auto vector = dyn_cast<VectorType>(type)) // of pointers, too
      return !vector.isScalable() && vector.getElementType().isIntOrIndexOrFloat();
    return type.isIntOrIndexOrFloat() || isa<ComplexType>(type);
  }

  LogicalResult check(Type part, Type whole) {
    if (isExchanged(part) && isExchanged(whole)) // how shapes fit the verifier knows
      return success();
    return op.emitOpError() << "exchanges values of type " << whole
                            << ": only numbers and vectors of numbers can be";
  }

  /// Where the share of a lane begins. Lanes go along the last of the dimensions that are shared out first,
  /// as in MLIR's own distribution of vectors.
  static SmallVector<int64_t> beginOf(int64_t lane, VectorType share, VectorType whole) {
    SmallVector<int64_t> offsets(share.getRank(), 0);
    for (int64_t i = share.getRank() - 1; i >= 0; --i) {
      int64_t shares = whole.getDimSize(i) / share.getDimSize(i);
      offsets[size_t(i)] = lane % shares * share.getDimSize(i);
      lane /= shares;
    }
    return offsets;
  }

  Value zeroOf(OpBuilder &b, Type type) {
    auto number = dyn_cast<ComplexType>(type);
    if (!number)
      return arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
    Value part = zeroOf(b, number.getElementType());
    return complex::CreateOp::create(b, loc, type, part, part);
  }

  Value read(OpBuilder &b, Value value, Value source) {
    return throughWords(b, loc, lanes, value,
                        [&](Value word) { return lanes.read(b, op, word, source, {}); });
  }

  Value gather(OpBuilder &b, Value part, Type type) {
    auto share = cast<VectorType>(part.getType());
    SmallVector<int64_t> strides(share.getRank(), 1);
    Value whole = zeroOf(b, type);
    for (unsigned i = 0; i < lanes.size; ++i)
      whole = vector::InsertStridedSliceOp::create(b, loc, read(b, part, constant32(b, loc, i)), whole,
                                                   beginOf(i, share, cast<VectorType>(type)), strides);
    return whole;
  }

  Value scatter(OpBuilder &b, Value whole, Type type) {
    auto share = cast<VectorType>(type);
    SmallVector<int64_t> strides(share.getRank(), 1);
    Value part;
    for (unsigned i = 0; i < lanes.size; ++i) {
      SmallVector<int64_t> offsets = beginOf(i, share, cast<VectorType>(whole.getType()));
      Value slice = vector::ExtractStridedSliceOp::create(b, loc, whole, offsets, share.getShape(), strides);
      slice = read(b, slice, constant32(b, loc, 0));
      Value mine = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, constant32(b, loc, i));
      part = part ? arith::SelectOp::create(b, loc, mine, slice, part).getResult() : slice;
    }
    return part;
  }

  gpu::WarpExecuteOnLane0Op op;
  Location loc;
  const Lanes &lanes;
  Value lane;
};

} // namespace

LogicalResult lowerLaneZeroRegions(gpu::GPUModuleOp module, const Lanes &lanes) {
  WalkResult walked = module.walk([&](gpu::WarpExecuteOnLane0Op op) {
    return failed(LaneZero(op, lanes).lower()) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace offload
