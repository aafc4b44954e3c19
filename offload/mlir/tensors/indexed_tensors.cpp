//===- indexed_tensors.cpp - tensor.gather and tensor.scatter -------------===//
//
// Both go over the elements of the tensor that has the dimensions of the places first ("batch") and those of
// a slice behind them. A slice's dimensions that places count are 1 there, or left out.
//
//===----------------------------------------------------------------------===//

#include "tensors/indexed_tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace offload {
namespace {

/// How an operation's dimensions belong together. `large` is the tensor that places are in, `small` has the
/// slices one by one.
struct Indexed {
  Value places;
  ArrayRef<int64_t> counted; // the dimensions of `large` that places count
  RankedTensorType large, small;

  int64_t batch() const { return cast<RankedTensorType>(places.getType()).getRank() - 1; }
  bool keepsOnes() const { return small.getRank() == batch() + large.getRank(); }

  /// Where the element of `small` at `at` stands in `large`.
  SmallVector<Value> placeOf(OpBuilder &b, Location loc, ValueRange at) const {
    SmallVector<Value> inPlaces(at.take_front(batch())), found;
    ValueRange inSlice = at.drop_front(batch());
    inPlaces.emplace_back();
    size_t next = 0;
    for (int64_t dim = 0; dim < large.getRank(); ++dim) {
      const int64_t *place = llvm::find(counted, dim);
      if (place == counted.end()) {
        found.push_back(inSlice[next++]);
        continue;
      }
      next += keepsOnes();
      inPlaces.back() = arith::ConstantIndexOp::create(b, loc, place - counted.begin());
      Value read = tensor::ExtractOp::create(b, loc, places, inPlaces);
      if (!read.getType().isIndex())
        read = arith::IndexCastOp::create(b, loc, b.getIndexType(), read);
      found.push_back(read);
    }
    return found;
  }
};

} // namespace

void lowerGather(tensor::GatherOp op, RewriterBase &rewriter) {
  Location loc = op.getLoc();
  Indexed indexed = {op.getIndices(), op.getGatherDims(), op.getSourceType(), op.getResultType()};
  RankedTensorType type = op.getResultType();
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < indexed.batch(); ++dim)
    sizes.push_back(tensor::getMixedSize(rewriter, loc, op.getIndices(), dim));
  for (int64_t dim = 0; dim < indexed.large.getRank(); ++dim)
    if (!llvm::is_contained(indexed.counted, dim))
      sizes.push_back(tensor::getMixedSize(rewriter, loc, op.getSource(), dim));
    else if (indexed.keepsOnes())
      sizes.push_back(rewriter.getIndexAttr(1));
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  SmallVector<AffineMap> maps = {rewriter.getMultiDimIdentityMap(type.getRank())};
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange) {
    SmallVector<Value> at;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      at.push_back(linalg::IndexOp::create(b, loc, dim));
    Value read = tensor::ExtractOp::create(b, loc, op.getSource(), indexed.placeOf(b, loc, at));
    linalg::YieldOp::create(b, loc, read);
  };
  auto generic =
      linalg::GenericOp::create(rewriter, loc, empty.getType(), ValueRange(), empty, maps, loops, body);
  rewriter.replaceOpWithNewOp<tensor::CastOp>(op, type, generic.getResult(0));
}

void lowerScatter(tensor::ScatterOp op, RewriterBase &rewriter) {
  Location loc = op.getLoc();
  Indexed indexed = {op.getIndices(), op.getScatterDims(), op.getDestType(), op.getSourceType()};
  auto element = RankedTensorType::get({}, op.getDestType().getElementType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, op.getSource());
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    ValueRange at = arguments.take_front(sizes.size());
    auto ones = [&](int64_t rank) { return SmallVector<OpFoldResult>(rank, b.getIndexAttr(1)); };
    Value read = tensor::ExtractSliceOp::create(b, loc, element, op.getSource(), getAsOpFoldResult(at),
                                                ones(at.size()), ones(at.size()));
    SmallVector<Value> place = indexed.placeOf(b, loc, at);
    auto end = scf::InParallelOp::create(b, loc);
    b.setInsertionPointToStart(end.getBody());
    tensor::ParallelInsertSliceOp::create(b, loc, read, arguments.back(), getAsOpFoldResult(place),
                                          ones(place.size()), ones(place.size()));
  };
  rewriter.replaceOpWithNewOp<scf::ForallOp>(op, sizes, op.getDest(), /*mapping=*/std::nullopt, body);
}

} // namespace offload
