//===- missing_tensors.cpp - offload-missing-tensors ----------------------===//
//
// Operations on tensors that bufferization does not know are written as those that it does:
//
//  * linalg.pack pads, expands and transposes, or goes over elements, where only the run tells how large its
//    tiles are; linalg.unpack does the reverse;
//  * tensor.bitcast is arith.bitcast;
//  * a cast that changes whether integers have a sign, and nothing else, is one of each element: lowered
//    StableHLO has builtin.unrealized_conversion_cast where its tensors are unsigned;
//  * tensor.gather and tensor.scatter go over elements;
//  * the transforms of Winograd's convolution are parallel loops over small products of matrices;
//  * a tensor<?x0> as a tensor<?> is one of no elements: of its memory MLIR would say that it has a known
//  size;
//  * arith.select of one of two tensors that may have different sizes is a branch: on elements, it would go
//    through both as far as the first one is long;
//  * what MLIR folds to a constant of unknown shape, as it does %x ^ %x, is filled: such a constant has no
//    bytes;
//  * a bufferization.to_tensor that does not say `restrict` gets it where that is so: where conversions to
//    loops leave one, it stands in front of the stores.
//
// What MLIR has no such form for stays, and is an error of bufferization.
//
//===----------------------------------------------------------------------===//

#include "input/size_origin.h"
#include "passes.h"
#include "tensors/indexed_tensors.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// As the types of arithmetic are.
bool isSignless(tensor::BitcastOp op) {
  auto from = dyn_cast<RankedTensorType>(op.getSource().getType()),
       to = dyn_cast<RankedTensorType>(op.getType());
  return from && to && from.getElementType().isSignlessIntOrFloat() &&
         to.getElementType().isSignlessIntOrFloat();
}

/// Are both the same tensor but for the signs of its integers?
bool changesSign(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return false;
  auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType()),
       to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!from || !to || from.getShape() != to.getShape() || from.getEncoding() != to.getEncoding())
    return false;
  auto integer = dyn_cast<IntegerType>(from.getElementType()),
       other = dyn_cast<IntegerType>(to.getElementType());
  return integer && other && integer != other && integer.getWidth() == other.getWidth();
}

void writeSigns(Operation *op, IRRewriter &rewriter) {
  Location loc = op->getLoc();
  Value from = op->getOperand(0);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, from);
  Value place = tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  AffineMap map = rewriter.getMultiDimIdentityMap(unsigned(type.getRank()));
  SmallVector<utils::IteratorType> loops(size_t(type.getRank()), utils::IteratorType::parallel);
  auto castElement = [&](OpBuilder &b, Location at, ValueRange elements) {
    auto element = UnrealizedConversionCastOp::create(b, at, type.getElementType(), elements[0]);
    linalg::YieldOp::create(b, at, element.getResult(0));
  };
  rewriter.replaceOpWithNewOp<linalg::GenericOp>(op, TypeRange(type), ValueRange(from), ValueRange(place),
                                                 ArrayRef<AffineMap>{map, map}, loops, castElement);
}

/// Replaces an operation that folds to another tensor, as the passes that follow do, or to one number
/// everywhere.
void fold(Operation *op, IRRewriter &rewriter) {
  SmallVector<OpFoldResult> folded;
  if (op->getNumResults() != 1)
    return;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || failed(op->fold(folded)) || folded.size() != 1)
    return;
  if (auto tensor = dyn_cast<Value>(folded[0]))
    return rewriter.replaceOp(op, tensor);
  auto constant = dyn_cast<SplatElementsAttr>(cast<Attribute>(folded[0]));
  if (!constant || type.hasStaticShape() || !type.getElementType().isIntOrIndexOrFloat() ||
      !OpTrait::hasElementwiseMappableTraits(op))
    return;
  Location loc = op->getLoc();
  Value like = *llvm::find_if(op->getOperands(), [](Value v) { return isa<RankedTensorType>(v.getType()); });
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(tensor::DimOp::create(rewriter, loc, like, i));
  Value number = arith::ConstantOp::create(rewriter, loc, constant.getSplatValue<TypedAttr>());
  rewriter.replaceOpWithNewOp<tensor::SplatOp>(op, number, type, sizes);
}

/// Has a dimension of unknown size another one of size 0 in it?
bool hidesZero(tensor::CollapseShapeOp op) {
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices()))
    if (op.getResultType().isDynamicDim(unsigned(i)) &&
        llvm::any_of(group, [&](int64_t dim) { return op.getSrcType().getDimSize(unsigned(dim)) == 0; }))
      return true;
  return false;
}

void writeEmpty(tensor::CollapseShapeOp op, IRRewriter &rewriter) {
  Location loc = op.getLoc();
  SmallVector<Value> sizes;
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
    if (!op.getResultType().isDynamicDim(unsigned(i)))
      continue;
    sizes.push_back(arith::ConstantIndexOp::create(rewriter, loc, 1));
    for (int64_t dim : group)
      sizes.back() = arith::MulIOp::create(rewriter, loc, sizes.back(),
                                           tensor::DimOp::create(rewriter, loc, op.getSrc(), dim));
  }
  rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, op.getResultType(), sizes);
}

bool isElementwiseOfNoRank(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) &&
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<UnrankedTensorType>);
}

/// MLIR's loops of Winograd's transforms, each around the next one, are over tiles of which each has its own
/// place in the result. As an scf.forall they are one kernel, not launches for every tile.
void makeParallel(scf::ForOp outer, IRRewriter &rewriter) {
  SmallVector<scf::ForOp> loops = {outer};
  while (auto inner = loops.back().getBody()->getTerminator()->getOperand(0).getDefiningOp<scf::ForOp>())
    loops.push_back(inner);
  auto place = loops.back().getBody()->getTerminator()->getOperand(0).getDefiningOp<tensor::InsertSliceOp>();
  if (!place)
    return;
  Location loc = outer.getLoc();
  SmallVector<OpFoldResult> from, until, step;
  for (scf::ForOp loop : loops) {
    from.push_back(getAsOpFoldResult(loop.getLowerBound()));
    until.push_back(getAsOpFoldResult(loop.getUpperBound()));
    step.push_back(getAsOpFoldResult(loop.getStep()));
  }
  rewriter.setInsertionPoint(outer);
  auto all = scf::ForallOp::create(rewriter, loc, from, until, step, outer.getInitArgs(), std::nullopt);
  rewriter.setInsertionPointToStart(all.getBody());
  IRMapping map;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    map.map(loop.getInductionVar(), all.getInductionVar(int64_t(i)));
    map.map(loop.getRegionIterArgs()[0], all.getRegionIterArgs()[0]);
    for (Operation &op : loop.getBody()->without_terminator())
      if (!isa<scf::ForOp>(op) && &op != place)
        rewriter.clone(op, map);
  }
  auto mapped = [&](ArrayRef<OpFoldResult> values) {
    SmallVector<OpFoldResult> made;
    for (OpFoldResult value : values)
      made.push_back(isa<Value>(value) ? OpFoldResult(map.lookupOrDefault(cast<Value>(value))) : value);
    return made;
  };
  rewriter.setInsertionPointToEnd(all.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(rewriter, loc, map.lookupOrDefault(place.getSource()),
                                        all.getRegionIterArgs()[0], mapped(place.getMixedOffsets()),
                                        mapped(place.getMixedSizes()), mapped(place.getMixedStrides()));
  rewriter.replaceOp(outer, all.getResults());
}

void makeParallel(FailureOr<Operation *> lowered, IRRewriter &rewriter) {
  if (succeeded(lowered))
    if (auto loop = dyn_cast<scf::ForOp>(*lowered))
      makeParallel(loop, rewriter);
}

bool isOfTwoSizes(arith::SelectOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  for (int64_t i = 0; type && choosesWhole(op) && i < type.getRank(); ++i)
    if (!isOne(originOf(op.getTrueValue(), i), originOf(op.getFalseValue(), i)))
      return true;
  return false;
}

void writeBranch(arith::SelectOp op, IRRewriter &rewriter) {
  auto branch = scf::IfOp::create(
      rewriter, op.getLoc(), op.getCondition(),
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, op.getTrueValue()); },
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, op.getFalseValue()); });
  rewriter.replaceOp(op, branch);
}

/// Each element of the tiles is that of its place, or the padding where there is none.
void writePack(linalg::PackOp op, IRRewriter &b) {
  Location loc = op.getLoc();
  int64_t rank = op.getSourceRank();
  auto type = cast<RankedTensorType>(op.getDest().getType());
  SmallVector<int64_t> outer(op.getOuterDimsPerm());
  if (outer.empty())
    outer = llvm::to_vector(llvm::seq<int64_t>(rank));
  SmallVector<Value> tiles, sizes;
  for (auto [dimension, tile] : llvm::zip_equal(op.getInnerDimsPos(), op.getMixedTiles())) {
    tiles.push_back(getValueOrCreateConstantIndexOp(b, loc, tile));
    OpFoldResult size = tensor::getMixedSize(b, loc, op.getSource(), dimension);
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
  }
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto element = [&](OpBuilder &b, Location loc, ValueRange) {
    auto index = [&](int64_t loop) -> Value { return linalg::IndexOp::create(b, loc, loop); };
    SmallVector<Value> places(rank);
    for (auto [loop, dimension] : llvm::enumerate(outer))
      places[dimension] = index(int64_t(loop));
    Value isThere;
    for (auto [i, dimension] : llvm::enumerate(op.getInnerDimsPos())) {
      Value &place = places[dimension];
      place = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, place, tiles[i]),
                                    index(rank + int64_t(i)));
      if (!op.getPaddingValue())
        continue;
      Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, sizes[i]);
      isThere = isThere ? arith::AndIOp::create(b, loc, isThere, fits).getResult() : fits;
      place = arith::MinUIOp::create(b, loc, place, arith::SubIOp::create(b, loc, sizes[i], one));
    }
    Value value = tensor::ExtractOp::create(b, loc, op.getSource(), places);
    if (isThere)
      value = arith::SelectOp::create(b, loc, isThere, value, op.getPaddingValue());
    linalg::YieldOp::create(b, loc, value);
  };
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(unsigned(type.getRank()))};
  SmallVector<utils::IteratorType> loops(size_t(type.getRank()), utils::IteratorType::parallel);
  auto made =
      linalg::GenericOp::create(b, loc, type, ValueRange(), ValueRange(op.getDest()), maps, loops, element);
  b.replaceOp(op, made.getResult(0));
}

bool readsAlone(Operation *user, Value memory) {
  if (auto copy = dyn_cast<memref::CopyOp>(user))
    return copy.getTarget() != memory;
  if (auto computed = dyn_cast<linalg::LinalgOp>(user))
    return !llvm::is_contained(computed.getDpsInits(), memory);
  return isa<memref::LoadOp, memref::DimOp, memref::DeallocOp>(user);
}

/// Is it the only tensor of an allocation, which nothing writes to any more where the tensor is first used?
bool isAlone(bufferization::ToTensorOp op) {
  Value memory = op.getBuffer();
  Block *block = op->getBlock();
  if (op.getWritable() || !isa_and_nonnull<memref::AllocOp>(memory.getDefiningOp()) ||
      memory.getParentBlock() != block ||
      llvm::any_of(op->getUsers(), llvm::IsaPred<bufferization::ToBufferOp>))
    return false;
  return llvm::all_of(memory.getUsers(), [&](Operation *user) {
    if (user == op || readsAlone(user, memory))
      return true;
    bool writesAlone = isa<memref::CopyOp, linalg::LinalgOp>(user) ||
                       (isa<memref::StoreOp>(user) && cast<memref::StoreOp>(user).getMemRef() == memory);
    Operation *writes = block->findAncestorOpInBlock(*user);
    return writesAlone && writes && llvm::all_of(op->getUsers(), [&](Operation *reader) {
             Operation *reads = block->findAncestorOpInBlock(*reader);
             return reads && writes->isBeforeInBlock(reads);
           });
  });
}

struct MissingTensors : public PassWrapper<MissingTensors, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MissingTensors)

  StringRef getArgument() const final { return "offload-missing-tensors"; }
  StringRef getDescription() const final { return "Write out operations on tensors that have no memory"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](Operation *op) {
      rewriter.setInsertionPoint(op);
      if (isElementwiseOfNoRank(op)) {
        op->emitError(
            "tensors of unknown rank have no elements that a loop could go over: cast them to a rank "
            "(tensor.cast)");
        return signalPassFailure();
      }
      if (auto pack = dyn_cast<linalg::PackOp>(op)) {
        if (failed(linalg::lowerPack(rewriter, pack)))
          writePack(pack, rewriter);
      } else if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
        (void)linalg::lowerUnPack(rewriter, unpack);
      else if (auto bits = dyn_cast<tensor::BitcastOp>(op); bits && isSignless(bits))
        rewriter.replaceOpWithNewOp<arith::BitcastOp>(bits, bits.getType(), bits.getSource());
      else if (isa<tensor::BitcastOp, UnrealizedConversionCastOp>(op) && changesSign(op))
        writeSigns(op, rewriter);
      else if (auto tensor = dyn_cast<bufferization::ToTensorOp>(op); tensor && isAlone(tensor))
        tensor.setRestrict(true);
      else if (auto choice = dyn_cast<arith::SelectOp>(op); choice && isOfTwoSizes(choice))
        writeBranch(choice, rewriter);
      else if (auto gather = dyn_cast<tensor::GatherOp>(op))
        lowerGather(gather, rewriter);
      else if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
        lowerScatter(scatter, rewriter);
      else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op); collapse && hidesZero(collapse))
        writeEmpty(collapse, rewriter);
      else if (auto filter = dyn_cast<linalg::WinogradFilterTransformOp>(op))
        makeParallel(linalg::decomposeWinogradFilterTransformOp(rewriter, filter), rewriter);
      else if (auto input = dyn_cast<linalg::WinogradInputTransformOp>(op))
        makeParallel(linalg::decomposeWinogradInputTransformOp(rewriter, input), rewriter);
      else if (auto output = dyn_cast<linalg::WinogradOutputTransformOp>(op))
        makeParallel(linalg::decomposeWinogradOutputTransformOp(rewriter, output), rewriter);
      else
        fold(op, rewriter);
    });
  }
};

} // namespace

void registerMissingTensorsPass() { PassRegistration<MissingTensors>(); }

} // namespace offload
