//===- other_contractions.cpp - vector.contract that MLIR leaves ----------===//
//
// MLIR 22 lowers products of two matrices to outer products, whatever their elements and sums. All other
// contractions (in batches, to a vector or to one number) it lowers where the elements have the sum's type
// and are added. The rest is here: elements become those of the sum, and a sum that is no addition, or that
// has a mask, is a reduction of all products at once.
//
//===----------------------------------------------------------------------===//

#include "device/numeric.h"
#include "device/prepare_vectors.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"

using namespace mlir;

namespace offload {
namespace {

using ContractionPattern = vector::MaskableOpRewritePattern<vector::ContractionOp>;

// MLIR's own patterns have a benefit of 1.
constexpr unsigned kBefore = 2, kLast = 0;

Type sumOf(vector::ContractionOp op) { return getElementTypeOrSelf(op.getResultType()); }

/// The operation, under the mask that there may be.
Value masked(PatternRewriter &b, Operation *op, Value mask) {
  return mask ? vector::maskOperation(b, op, mask)->getResult(0) : op->getResult(0);
}

Value maskOf(vector::MaskingOpInterface op) { return op ? op.getMask() : Value(); }

/// Elements of the sum's type; integers have a sign, as in MLIR's outer products.
struct WidenContracted : public ContractionPattern {
  explicit WidenContracted(MLIRContext *context) : ContractionPattern(context, kLast) {}

  FailureOr<Value> matchAndRewriteMaskableOp(vector::ContractionOp op, vector::MaskingOpInterface mask,
                                             PatternRewriter &b) const override {
    Type sum = sumOf(op);
    bool changed = false;
    auto widened = [&](Value value) -> Value {
      Type type = withElement(value.getType(), sum), element = getElementTypeOrSelf(value);
      if (element == sum)
        return value;
      changed = true;
      if (isa<FloatType>(sum) && isa<FloatType>(element))
        return arith::ExtFOp::create(b, op.getLoc(), type, value);
      if (sum.isInteger() && element.isInteger())
        return arith::ExtSIOp::create(b, op.getLoc(), type, value);
      return {};
    };
    for (Type element : {op.getLhsType().getElementType(), op.getRhsType().getElementType()})
      if (element != sum && (!element.isIntOrFloat() || !sum.isIntOrFloat() ||
                             element.getIntOrFloatBitWidth() >= sum.getIntOrFloatBitWidth() ||
                             isa<FloatType>(element) != isa<FloatType>(sum)))
        return failure();
    Value lhs = widened(op.getLhs()), rhs = widened(op.getRhs());
    if (!changed)
      return failure();
    auto wide = vector::ContractionOp::create(b, op.getLoc(), lhs, rhs, op.getAcc(), op.getIndexingMaps(),
                                              op.getIteratorTypes(), op.getKind());
    return masked(b, wide, maskOf(mask));
  }
};

/// A vector over all dimensions of a contraction: what an operand has there.
Value overAll(OpBuilder &b, Location loc, Value value, AffineMap map, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape, places(sizes.size(), -1);
  auto put = [&](unsigned dim) {
    places[dim] = int64_t(shape.size());
    shape.push_back(sizes[dim]);
  };
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (!map.isFunctionOfDim(dim)) // along which all is the same: a broadcast's come first
      put(dim);
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    put(map.getDimPosition(i));
  auto type = VectorType::get(shape, getElementTypeOrSelf(value));
  value = b.createOrFold<vector::BroadcastOp>(loc, type, value);
  return b.createOrFold<vector::TransposeOp>(loc, value, places);
}

struct ReduceContracted : public ContractionPattern {
  /// `before`: before MLIR's patterns, those alone that they lower wrong.
  ReduceContracted(MLIRContext *context, bool before)
      : ContractionPattern(context, before ? kBefore : kLast), before(before) {}

  FailureOr<Value> matchAndRewriteMaskableOp(vector::ContractionOp op, vector::MaskingOpInterface mask,
                                             PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Type sum = sumOf(op);
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    if (op.getLhsType().getElementType() != sum || op.getRhsType().getElementType() != sum ||
        op.getLhsType().isScalable() || op.getRhsType().isScalable() ||
        (before && !(mask && maps[0].getNumDims() > 3)))
      return failure();
    SmallVector<int64_t> sizes(maps[0].getNumDims(), 1);
    auto measure = [&](AffineMap map, VectorType type) {
      for (auto [i, size] : llvm::enumerate(type.getShape()))
        sizes[map.getDimPosition(unsigned(i))] = size;
    };
    measure(maps[0], op.getLhsType());
    measure(maps[1], op.getRhsType());

    Value lhs = overAll(b, loc, op.getLhs(), maps[0], sizes),
          rhs = overAll(b, loc, op.getRhs(), maps[1], sizes);
    Value product;
    if (isa<FloatType>(sum))
      product = arith::MulFOp::create(b, loc, lhs, rhs);
    else
      product = arith::MulIOp::create(b, loc, lhs, rhs);

    // The sum's dimensions in their order, which is that of a reduction's result.
    SmallVector<int64_t> order, back(maps[2].getNumResults());
    SmallVector<bool> reduced;
    for (unsigned dim = 0; dim < sizes.size(); ++dim) {
      std::optional<unsigned> place = maps[2].getResultPosition(b.getAffineDimExpr(dim));
      reduced.push_back(!place);
      if (!place)
        continue;
      back[*place] = int64_t(order.size());
      order.push_back(*place);
    }
    Value acc = op.getAcc(), result;
    if (!order.empty())
      acc = b.createOrFold<vector::TransposeOp>(loc, acc, order);
    if (llvm::is_contained(reduced, true))
      result = masked(b, vector::MultiDimReductionOp::create(b, loc, product, acc, reduced, op.getKind()),
                      maskOf(mask));
    else
      result =
          vector::makeArithReduction(b, loc, op.getKind(), product, acc, /*fastmath=*/nullptr, maskOf(mask));
    if (!order.empty())
      result = b.createOrFold<vector::TransposeOp>(loc, result, back);
    return result;
  }

  bool before;
};

} // namespace

void addOtherContractions(RewritePatternSet &patterns) {
  patterns.add<WidenContracted>(patterns.getContext());
  for (bool before : {true, false})
    patterns.add<ReduceContracted>(patterns.getContext(), before);
}

} // namespace offload
