//===- missing_tensors.cpp - offload-missing-tensors ----------------------===//
//
// Operations on tensors that bufferization does not know are written as those that it does:
//
//  * linalg.pack pads, expands and transposes; linalg.unpack does the reverse;
//  * tensor.bitcast is arith.bitcast;
//  * tensor.gather and tensor.scatter go over elements;
//  * the transforms of Winograd's convolution are loops over small products of matrices;
//  * a tensor<?x0> as a tensor<?> is one of no elements: of its memory MLIR would say that it has a known
//  size;
//  * what MLIR folds to a constant of unknown shape, as it does %x ^ %x, is filled: such a constant has no
//    bytes.
//
// What MLIR has no such form for stays, and is an error of bufferization.
//
//===----------------------------------------------------------------------===//

#include "passes.h"
#include "tensors/indexed_tensors.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
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
      if (auto pack = dyn_cast<linalg::PackOp>(op))
        (void)linalg::lowerPack(rewriter, pack);
      else if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
        (void)linalg::lowerUnPack(rewriter, unpack);
      else if (auto bits = dyn_cast<tensor::BitcastOp>(op); bits && isSignless(bits))
        rewriter.replaceOpWithNewOp<arith::BitcastOp>(bits, bits.getType(), bits.getSource());
      else if (auto gather = dyn_cast<tensor::GatherOp>(op))
        lowerGather(gather, rewriter);
      else if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
        lowerScatter(scatter, rewriter);
      else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op); collapse && hidesZero(collapse))
        writeEmpty(collapse, rewriter);
      else if (auto filter = dyn_cast<linalg::WinogradFilterTransformOp>(op))
        (void)linalg::decomposeWinogradFilterTransformOp(rewriter, filter);
      else if (auto input = dyn_cast<linalg::WinogradInputTransformOp>(op))
        (void)linalg::decomposeWinogradInputTransformOp(rewriter, input);
      else if (auto output = dyn_cast<linalg::WinogradOutputTransformOp>(op))
        (void)linalg::decomposeWinogradOutputTransformOp(rewriter, output);
      else
        fold(op, rewriter);
    });
  }
};

} // namespace

void registerMissingTensorsPass() { PassRegistration<MissingTensors>(); }

} // namespace offload
