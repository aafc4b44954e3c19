//===- prepare_vectors.cpp - offload-prepare-vectors ----------------------===//
//
// Vectors in kernels. Refuses what has no meaning there (scalable vectors, printing); lets vectors of i1 move
// to and from memory as the bytes that memrefs of i1 have, where LLVM's vectors of i1 are packed bits, and a
// vendor's descriptor has the size of a bit, in bytes none; writes out operations on vectors of several
// dimensions that convert-vector-to-llvm leaves alone.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_vectors.h"
#include "device/numeric.h"
#include "device/vendor_rules.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace offload {
namespace {

bool isScalable(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.isScalable();
}

LogicalResult checkOperation(Operation *op) {
  if (isa<vector::VectorScaleOp, vector::ScalableInsertOp, vector::ScalableExtractOp>(op) ||
      llvm::any_of(op->getOperandTypes(), isScalable) || llvm::any_of(op->getResultTypes(), isScalable))
    return op->emitError("scalable vectors exist on no GPU: use a vector of a fixed size");
  if (isa<vector::PrintOp>(op) && op->getParentOfType<gpu::GPUModuleOp>())
    return op->emitError(
        "'vector.print' in a kernel has nowhere to print to: store the vector and print it on "
        "the host, or use gpu.printf with its elements");
  return success();
}

/// The operand that is a mask rather than data, where the operation has one.
OpOperand *maskOf(Operation *op) {
  return TypeSwitch<Operation *, OpOperand *>(op)
      .Case<vector::MaskedLoadOp, vector::MaskedStoreOp, vector::GatherOp, vector::ScatterOp,
            vector::ExpandLoadOp, vector::CompressStoreOp>(
          [](auto access) { return &access.getMaskMutable(); })
      .Case<vector::TransferReadOp, vector::TransferWriteOp>([](auto access) -> OpOperand * {
        MutableOperandRange mask = access.getMaskMutable();
        return mask.empty() ? nullptr : &mask[0];
      })
      .Default([](Operation *) { return nullptr; });
}

bool isBits(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    type = shaped.getElementType();
  return type.isInteger(1);
}

MemRefType withBytes(MemRefType memory) {
  return MemRefType::get(memory.getShape(), IntegerType::get(memory.getContext(), 8), memory.getLayout(),
                         memory.getMemorySpace());
}

/// A vector access to a memref of i1, as one to a memref of i8 on the same memory.
void makeBytes(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type byte = b.getI8Type();
  OpOperand *mask = maskOf(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (&operand == mask || !isBits(type))
      continue;
    if (auto memory = dyn_cast<MemRefType>(type)) {
      operand.set(UnrealizedConversionCastOp::create(b, loc, withBytes(memory), operand.get()).getResult(0));
    } else {
      operand.set(arith::ExtUIOp::create(b, loc, withElement(type, byte), operand.get()));
    }
  }
  b.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (auto memory = dyn_cast<MemRefType>(result.getType())) {
      result.setType(withBytes(memory));
      auto bits = UnrealizedConversionCastOp::create(b, loc, memory, result);
      result.replaceAllUsesExcept(bits.getResult(0), bits);
      continue;
    }
    Type type = withElement(result.getType(), byte);
    result.setType(type);
    Value zero = integerOf(b, loc, type, 0);
    auto bits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, result, zero);
    result.replaceAllUsesExcept(bits, bits);
  }
}

bool isAccessToBits(Operation *op) {
  return (isa<vector::LoadOp, vector::StoreOp, vector::MaskedLoadOp, vector::MaskedStoreOp, vector::GatherOp,
              vector::ScatterOp, vector::ExpandLoadOp, vector::CompressStoreOp, vector::TransferReadOp,
              vector::TransferWriteOp>(op) ||
          describesMemory(op)) &&
         llvm::any_of(op->getOperandTypes(), [](Type type) {
           auto memory = dyn_cast<MemRefType>(type);
           return memory && memory.getElementType().isInteger(1);
         });
}

/// The position of one row of a vector of several dimensions in memory, by the row's place in the vector.
SmallVector<Value> rowIndices(OpBuilder &b, Location loc, ValueRange indices, ArrayRef<int64_t> row) {
  SmallVector<Value> result(indices);
  size_t first = indices.size() - row.size() - 1;
  for (auto [i, offset] : llvm::enumerate(row)) {
    Value step = arith::ConstantIndexOp::create(b, loc, offset);
    result[first + i] = arith::AddIOp::create(b, loc, result[first + i], step);
  }
  return result;
}

bool hasRows(VectorType type, ValueRange indices) {
  return type.getRank() > 1 && !type.isScalable() && indices.size() >= static_cast<size_t>(type.getRank());
}

/// Every place of a row in the vector: all but the last index.
void forEachRow(VectorType type, llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> shape(type.getShape().drop_back()), row(shape.size(), 0);
  for (int64_t i = 0, e = type.getNumElements() / type.getShape().back(); i < e; ++i) {
    visit(row);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++row[axis] < shape[axis])
        break;
      row[axis] = 0;
    }
  }
}

/// Whole elements of a memory of vectors: its dimensions are not the vector's.
bool areElements(VectorType type, MemRefType memory) {
  return type.getRank() > 1 && memory.getElementType() == type;
}

struct LoadRows : public OpRewritePattern<vector::LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::LoadOp op, PatternRewriter &b) const override {
    VectorType type = op.getVectorType();
    if (areElements(type, op.getMemRefType())) {
      b.replaceOpWithNewOp<memref::LoadOp>(op, op.getBase(), op.getIndices(), op.getNontemporal());
      return success();
    }
    if (!hasRows(type, op.getIndices()))
      return failure();
    Location loc = op.getLoc();
    auto rowType = VectorType::get({type.getShape().back()}, type.getElementType());
    Value result = ub::PoisonOp::create(b, loc, type);
    forEachRow(type, [&](ArrayRef<int64_t> row) {
      Value loaded =
          vector::LoadOp::create(b, loc, rowType, op.getBase(), rowIndices(b, loc, op.getIndices(), row));
      result = vector::InsertOp::create(b, loc, loaded, result, row);
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct StoreRows : public OpRewritePattern<vector::StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::StoreOp op, PatternRewriter &b) const override {
    if (areElements(op.getVectorType(), op.getMemRefType())) {
      b.replaceOpWithNewOp<memref::StoreOp>(op, op.getValueToStore(), op.getBase(), op.getIndices(),
                                            op.getNontemporal());
      return success();
    }
    if (!hasRows(op.getVectorType(), op.getIndices()))
      return failure();
    Location loc = op.getLoc();
    forEachRow(op.getVectorType(), [&](ArrayRef<int64_t> row) {
      Value part = vector::ExtractOp::create(b, loc, op.getValueToStore(), row);
      vector::StoreOp::create(b, loc, part, op.getBase(), rowIndices(b, loc, op.getIndices(), row));
    });
    b.eraseOp(op);
    return success();
  }
};

/// Rows of a vector of several dimensions with a mask, which has these dimensions, too.
struct LoadMaskedRows : public OpRewritePattern<vector::MaskedLoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::MaskedLoadOp op, PatternRewriter &b) const override {
    VectorType type = op.getVectorType();
    if (!hasRows(type, op.getIndices()))
      return failure();
    Location loc = op.getLoc();
    auto rowType = VectorType::get({type.getShape().back()}, type.getElementType());
    Value result = op.getPassThru();
    forEachRow(type, [&](ArrayRef<int64_t> row) {
      Value mask = vector::ExtractOp::create(b, loc, op.getMask(), row);
      Value otherwise = vector::ExtractOp::create(b, loc, op.getPassThru(), row);
      Value loaded = vector::MaskedLoadOp::create(b, loc, rowType, op.getBase(),
                                                  rowIndices(b, loc, op.getIndices(), row), mask, otherwise);
      result = vector::InsertOp::create(b, loc, loaded, result, row);
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct StoreMaskedRows : public OpRewritePattern<vector::MaskedStoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::MaskedStoreOp op, PatternRewriter &b) const override {
    if (!hasRows(op.getVectorType(), op.getIndices()))
      return failure();
    Location loc = op.getLoc();
    forEachRow(op.getVectorType(), [&](ArrayRef<int64_t> row) {
      Value mask = vector::ExtractOp::create(b, loc, op.getMask(), row);
      Value part = vector::ExtractOp::create(b, loc, op.getValueToStore(), row);
      vector::MaskedStoreOp::create(b, loc, op.getBase(), rowIndices(b, loc, op.getIndices(), row), mask,
                                    part);
    });
    b.eraseOp(op);
    return success();
  }
};

struct ScatterRows : public OpRewritePattern<vector::ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::ScatterOp op, PatternRewriter &b) const override {
    VectorType type = op.getVectorType();
    if (type.getRank() < 2 || type.isScalable() || isa<vector::MaskOp>(op->getParentOp()) ||
        !isa<MemRefType>(op.getBase().getType()))
      return failure();
    auto rowOf = [&](Value whole, ArrayRef<int64_t> row) -> Value {
      return vector::ExtractOp::create(b, op.getLoc(), whole, row);
    };
    forEachRow(type, [&](ArrayRef<int64_t> row) {
      vector::ScatterOp::create(b, op.getLoc(), /*result=*/Type(), op.getBase(), op.getOffsets(),
                                rowOf(op.getIndices(), row), rowOf(op.getMask(), row),
                                rowOf(op.getValueToStore(), row), op.getAlignmentAttr());
    });
    b.eraseOp(op);
    return success();
  }
};

/// The first index that only the run knows and that is not an element's in its row, which LLVM's vectors
/// have: -1 where there is none.
int64_t unknownRow(VectorType type, ArrayRef<OpFoldResult> position) {
  for (auto [axis, index] : llvm::enumerate(position.take_front(type.getRank() - 1)))
    if (isa<Value>(index))
      return axis;
  return -1;
}

/// What `each` makes for every place along an axis, with the place in the position, and with whether it is
/// the one.
template <typename Each>
void forEachPlace(OpBuilder &b, Location loc, VectorType type, SmallVector<OpFoldResult> position,
                  int64_t axis, Each each) {
  Value wanted = cast<Value>(position[axis]);
  for (int64_t i = 0, e = type.getDimSize(axis); i < e; ++i) {
    Value place = arith::ConstantIndexOp::create(b, loc, i);
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, wanted, place);
    position[axis] = b.getIndexAttr(i);
    each(ArrayRef<OpFoldResult>(position), here);
  }
}

struct ExtractUnknownRow : public OpRewritePattern<vector::ExtractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::ExtractOp op, PatternRewriter &b) const override {
    VectorType type = op.getSourceVectorType();
    int64_t axis = type.getRank() ? unknownRow(type, op.getMixedPosition()) : -1;
    if (axis < 0)
      return failure();
    Location loc = op.getLoc();
    Value result;
    forEachPlace(b, loc, type, op.getMixedPosition(), axis, [&](ArrayRef<OpFoldResult> place, Value here) {
      Value part = vector::ExtractOp::create(b, loc, op.getSource(), place);
      result = result ? arith::SelectOp::create(b, loc, here, part, result).getResult() : part;
    });
    b.replaceOp(op, result);
    return success();
  }
};

struct InsertUnknownRow : public OpRewritePattern<vector::InsertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::InsertOp op, PatternRewriter &b) const override {
    VectorType type = op.getDestVectorType();
    int64_t axis = type.getRank() ? unknownRow(type, op.getMixedPosition()) : -1;
    if (axis < 0)
      return failure();
    Location loc = op.getLoc();
    Value result = op.getDest();
    forEachPlace(b, loc, type, op.getMixedPosition(), axis, [&](ArrayRef<OpFoldResult> place, Value here) {
      Value old = vector::ExtractOp::create(b, loc, op.getDest(), place);
      Value part = arith::SelectOp::create(b, loc, here, op.getValueToStore(), old);
      result = vector::InsertOp::create(b, loc, part, result, place);
    });
    b.replaceOp(op, result);
    return success();
  }
};

/// The dimensions of a transfer's vector that lie along one of memory's, in memory's order.
SmallVector<int64_t> dimsInOrder(AffineMap map) {
  SmallVector<int64_t> dims;
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (isa<AffineDimExpr>(expr))
      dims.push_back(int64_t(dim));
  llvm::sort(dims, [&](int64_t a, int64_t b) {
    return map.getDimPosition(unsigned(a)) < map.getDimPosition(unsigned(b));
  });
  return dims;
}

bool hasMaskOfNumbers(VectorTransferOpInterface op) {
  return op.getMask() && op.getShapedType().getElementType().isIntOrIndexOrFloat();
}

/// The dimensions of a mask are in memory's order; convert-vector-to-scf takes them to be in the vector's,
/// but where the last dimensions of memory are all that the vector has. So it is read in memory's order.
struct ReadInOrder : public OpRewritePattern<vector::TransferReadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::TransferReadOp op, PatternRewriter &b) const override {
    VectorType type = op.getVectorType();
    AffineMap map = op.getPermutationMap();
    SmallVector<int64_t> dims = dimsInOrder(map);
    if (!hasMaskOfNumbers(cast<VectorTransferOpInterface>(op.getOperation())) || llvm::is_sorted(dims))
      return failure();
    SmallVector<int64_t> shape, places(type.getRank(), -1), ordered;
    auto put = [&](int64_t dim) {
      places[dim] = int64_t(shape.size());
      shape.push_back(type.getDimSize(unsigned(dim)));
    };
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(dims, dim)) // along which all is the same: a broadcast's come first
        put(dim);
    SmallVector<AffineExpr> exprs;
    SmallVector<bool> inBounds;
    for (int64_t dim : dims) {
      put(dim);
      ordered.push_back(shape.back());
      exprs.push_back(map.getResult(unsigned(dim)));
      inBounds.push_back(op.isDimInBounds(unsigned(dim)));
    }
    Value read = vector::TransferReadOp::create(
        b, op.getLoc(), VectorType::get(ordered, type.getElementType()), op.getBase(), op.getIndices(),
        AffineMapAttr::get(AffineMap::get(map.getNumDims(), 0, exprs, getContext())), op.getPadding(),
        op.getMask(), b.getBoolArrayAttr(inBounds));
    if (shape.size() > ordered.size())
      read = vector::BroadcastOp::create(b, op.getLoc(), VectorType::get(shape, type.getElementType()), read);
    b.replaceOpWithNewOp<vector::TransposeOp>(op, read, places);
    return success();
  }
};

/// The same for what is written. Dimensions of memory that the vector leaves out get a size of 1 in both:
/// MLIR adds these to a mask where they are not.
struct WriteInOrder : public OpRewritePattern<vector::TransferWriteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(vector::TransferWriteOp op, PatternRewriter &b) const override {
    AffineMap map = op.getPermutationMap();
    if (!hasMaskOfNumbers(cast<VectorTransferOpInterface>(op.getOperation())) || map.isMinorIdentity())
      return failure();
    SmallVector<int64_t> dims = dimsInOrder(map);
    unsigned rank = map.getNumDims(), first = map.getDimPosition(unsigned(dims[0]));
    SmallVector<int64_t> shape(rank - first, 1);
    SmallVector<bool> inBounds(rank - first, true);
    for (int64_t dim : dims) {
      unsigned place = map.getDimPosition(unsigned(dim)) - first;
      shape[place] = op.getVectorType().getDimSize(unsigned(dim));
      inBounds[place] = op.isDimInBounds(unsigned(dim));
    }
    auto spread = [&](Value vector) {
      Type element = cast<VectorType>(vector.getType()).getElementType();
      return b.createOrFold<vector::ShapeCastOp>(op.getLoc(), VectorType::get(shape, element), vector);
    };
    Value ordered = vector::TransposeOp::create(b, op.getLoc(), op.getVector(), dims);
    b.replaceOpWithNewOp<vector::TransferWriteOp>(
        op, spread(ordered), op.getBase(), op.getIndices(),
        AffineMapAttr::get(AffineMap::getMinorIdentityMap(rank, rank - first, getContext())),
        spread(op.getMask()), b.getBoolArrayAttr(inBounds));
    return success();
  }
};

/// Sums of a contraction may be more exact than its type: a processor without such numbers rounds each of
/// them by a dozen instructions.
void widenSums(Operation *root) {
  root->walk([](vector::ContractionOp op) {
    auto isSmall = [](Type type) {
      auto number = dyn_cast<FloatType>(getElementTypeOrSelf(type));
      return number && number.getWidth() < 32;
    };
    if (op.getKind() != vector::CombiningKind::ADD || !isSmall(op.getAccType()) ||
        isa<vector::MaskOp>(op->getParentOp())) // nothing else may be in there
      return;
    OpBuilder b(op);
    auto wide = [&](Value value) -> Value {
      auto vector = dyn_cast<VectorType>(value.getType());
      Type f32 = vector ? Type(vector.clone(b.getF32Type())) : b.getF32Type();
      return isSmall(value.getType()) ? arith::ExtFOp::create(b, op.getLoc(), f32, value) : value;
    };
    Value sum =
        vector::ContractionOp::create(b, op.getLoc(), wide(op.getLhs()), wide(op.getRhs()), wide(op.getAcc()),
                                      op.getIndexingMaps(), op.getIteratorTypes(), op.getKind());
    op->replaceAllUsesWith(arith::TruncFOp::create(b, op.getLoc(), op.getType(), sum));
    op.erase();
  });
}

/// On a vector.fma of the program's own, which rounds once.
constexpr char kRoundsOnce[] = "offload.rounds_once";

/// Contractions ask for no single rounding. Without an instruction for it, it takes a processor dozens of
/// others.
void splitProducts(Operation *root) {
  root->walk([](vector::FMAOp op) {
    if (op->removeAttr(kRoundsOnce))
      return;
    OpBuilder b(op);
    auto flags = arith::FastMathFlagsAttr::get(op.getContext(), arith::FastMathFlags::contract);
    Value product = arith::MulFOp::create(b, op.getLoc(), op.getLhs(), op.getRhs(), flags);
    op->replaceAllUsesWith(arith::AddFOp::create(b, op.getLoc(), product, op.getAcc(), flags));
    op.erase();
  });
}

struct PrepareVectors : public PassWrapper<PrepareVectors, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareVectors)

  PrepareVectors() = default;
  PrepareVectors(const PrepareVectors &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-prepare-vectors"; }
  StringRef getDescription() const final { return "Check vectors, write out those of several dimensions"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect, ub::UBDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() final {
    bool refused = getOperation()
                       ->walk([](Operation *op) {
                         return failed(checkOperation(op)) ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (refused)
      return signalPassFailure();

    MLIRContext *context = &getContext();
    if (splitsProducts)
      widenSums(getOperation());
    // Masks around operations go into them, or become a choice between old and new.
    RewritePatternSet masks(context);
    vector::populateVectorMaskLoweringPatternsForSideEffectingOps(masks);
    masks.add<LoadMaskedRows, StoreMaskedRows, ScatterRows>(context);
    addStridedAccesses(masks);
    if (failed(applyPatternsGreedily(getOperation(), std::move(masks))))
      return signalPassFailure();
    getOperation()->walk([](Operation *op) {
      if (isAccessToBits(op))
        makeBytes(op);
    });

    RewritePatternSet patterns(context);
    patterns.add<LoadRows, StoreRows, ExtractUnknownRow, InsertUnknownRow, ReadInOrder, WriteInOrder>(
        context);
    vector::populateVectorContractLoweringPatterns(patterns, vector::VectorContractLowering::OuterProduct);
    addOtherContractions(patterns);
    vector::populateVectorMultiReductionLoweringPatterns(patterns,
                                                         vector::VectorMultiReductionLowering::InnerParallel);
    vector::populateVectorOuterProductLoweringPatterns(patterns);
    vector::populateVectorScanLoweringPatterns(patterns);
    vector::populateVectorGatherLoweringPatterns(patterns);
    vector::populateVectorInterleaveLoweringPatterns(patterns);
    vector::populateVectorBitCastLoweringPatterns(patterns);
    vector::populateVectorTransposeLoweringPatterns(patterns, vector::VectorTransposeLowering::EltWise);
    // Rows of several dimensions are written out one dimension after the other.
    GreedyRewriteConfig config;
    config.setMaxIterations(100);
    if (splitsProducts)
      getOperation()->walk([&](vector::FMAOp op) { op->setAttr(kRoundsOnce, UnitAttr::get(context)); });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    if (splitsProducts)
      splitProducts(getOperation());
  }

  Option<bool> splitsProducts{
      *this, "split-products", llvm::cl::init(false),
      llvm::cl::desc("Contractions are products and sums, which the processor joins if it can")};
};

} // namespace

void registerPrepareVectorsPass() { PassRegistration<PrepareVectors>(); }

} // namespace offload
