//===- strided_vectors.cpp - Masked accesses to memory with gaps ----------===//
//
// A memref whose last dimension has a stride other than 1, or one that only the run knows, is a column or
// every second element of something. MLIR 22 lowers masked loads and stores of it, vector.expandload and
// vector.compressstore to LLVM's, which take what lies side by side from the first element on: those were
// other elements. Gathers and scatters of it have no lowering, and neither have vector.expandload and
// vector.compressstore of vectors of several dimensions, or of memory of a space: LLVM's take pointers of
// none. Here each element is loaded or stored by itself, where its bit of the mask is set.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_vectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

/// Memory with gaps, for an operation whose mask is all its own: one in vector.mask is another pattern's.
template <typename Access> bool isStrided(Access op) {
  auto memory = dyn_cast<MemRefType>(op.getBase().getType());
  return memory && memory.getRank() > 0 && !memory.isLastDimUnitStride() &&
         !isa<vector::MaskOp>(op->getParentOp());
}

/// LLVM's have one dimension, and memory of no space. What follows in memory follows in the vector, from row
/// to row.
template <typename Access> bool isWrittenOut(Access op) {
  return isStrided(op) ||
         ((op.getVectorType().getRank() > 1 || cast<MemRefType>(op.getBase().getType()).getMemorySpace()) &&
          !isa<vector::MaskOp>(op->getParentOp()));
}

/// One access, by its vector's places.
struct Elements {
  OpBuilder &b;
  Location loc;
  Value base, mask;
  ValueRange first;

  /// Calls `each` with every place of a vector.
  static void forEach(VectorType type, llvm::function_ref<void(ArrayRef<int64_t>)> each) {
    SmallVector<int64_t> strides = computeSuffixProduct(type.getShape());
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
      each(delinearize(i, strides));
  }

  Value of(Value vector, ArrayRef<int64_t> place) { return vector::ExtractOp::create(b, loc, vector, place); }
  SmallVector<Value> at(OpBuilder &in, Value step) {
    SmallVector<Value> indices(first);
    if (!indices.empty()) // memory of no dimensions has one element
      indices.back() = arith::AddIOp::create(in, loc, indices.back(), step);
    return indices;
  }
  Value load(ArrayRef<int64_t> place, Value step, Value otherwise) {
    auto branch =
        scf::IfOp::create(b, loc, TypeRange{otherwise.getType()}, of(mask, place), /*withElseRegion=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), other = branch.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, memref::LoadOp::create(then, loc, base, at(then, step)).getResult());
    scf::YieldOp::create(other, loc, otherwise);
    return branch.getResult(0);
  }
  void store(Value value, ArrayRef<int64_t> place, Value step) {
    auto branch = scf::IfOp::create(b, loc, of(mask, place));
    OpBuilder then = branch.getThenBodyBuilder();
    memref::StoreOp::create(then, loc, value, base, at(then, step));
  }
  Value number(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value index(Value any) {
    Type type = b.getIndexType();
    return any.getType() == type ? any : arith::IndexCastOp::create(b, loc, type, any).getResult();
  }
  /// How many elements there are so far in memory without gaps between those that the mask has.
  Value count(Value before, ArrayRef<int64_t> place) {
    Value one = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), of(mask, place));
    return arith::AddIOp::create(b, loc, before, one);
  }
};

struct LoadMasked : public OpRewritePattern<vector::MaskedLoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::MaskedLoadOp op, PatternRewriter &b) const override {
    if (!isStrided(op) || op.getVectorType().getRank() != 1)
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getIndices()};
    Value result = op.getPassThru();
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      Value loaded = elements.load(place, elements.number(place[0]), elements.of(result, place));
      result = vector::InsertOp::create(b, op.getLoc(), loaded, result, place);
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct StoreMasked : public OpRewritePattern<vector::MaskedStoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::MaskedStoreOp op, PatternRewriter &b) const override {
    if (!isStrided(op) || op.getVectorType().getRank() != 1)
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getIndices()};
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      elements.store(elements.of(op.getValueToStore(), place), place, elements.number(place[0]));
    });
    b.eraseOp(op);
    return success();
  }
};

struct LoadGathered : public OpRewritePattern<vector::GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::GatherOp op, PatternRewriter &b) const override {
    if (!isStrided(op))
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getOffsets()};
    Value result = op.getPassThru();
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      Value step = elements.index(elements.of(op.getIndices(), place));
      Value loaded = elements.load(place, step, elements.of(result, place));
      result = vector::InsertOp::create(b, op.getLoc(), loaded, result, place);
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct StoreScattered : public OpRewritePattern<vector::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::ScatterOp op, PatternRewriter &b) const override {
    if (!isStrided(op))
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getOffsets()};
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      Value step = elements.index(elements.of(op.getIndices(), place));
      elements.store(elements.of(op.getValueToStore(), place), place, step);
    });
    b.eraseOp(op);
    return success();
  }
};

struct LoadExpanded : public OpRewritePattern<vector::ExpandLoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::ExpandLoadOp op, PatternRewriter &b) const override {
    if (!isWrittenOut(op))
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getIndices()};
    Value result = op.getPassThru(), step = elements.number(0);
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      Value loaded = elements.load(place, step, elements.of(result, place));
      result = vector::InsertOp::create(b, op.getLoc(), loaded, result, place);
      step = elements.count(step, place);
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct StoreCompressed : public OpRewritePattern<vector::CompressStoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::CompressStoreOp op, PatternRewriter &b) const override {
    if (!isWrittenOut(op))
      return failure();
    Elements elements{b, op.getLoc(), op.getBase(), op.getMask(), op.getIndices()};
    Value step = elements.number(0);
    elements.forEach(op.getVectorType(), [&](ArrayRef<int64_t> place) {
      elements.store(elements.of(op.getValueToStore(), place), place, step);
      step = elements.count(step, place);
    });
    b.eraseOp(op);
    return success();
  }
};

} // namespace

void addStridedAccesses(RewritePatternSet &patterns) {
  patterns.add<LoadMasked, StoreMasked, LoadGathered, StoreScattered, LoadExpanded, StoreCompressed>(
      patterns.getContext());
}

} // namespace offload
