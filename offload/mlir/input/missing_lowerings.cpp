//===- missing_lowerings.cpp - offload-missing-lowerings ------------------===//
//
// Operations that MLIR 22 leaves as they are, lowers wrong, or at which its lowering ends the process:
//
//  * linalg.softmax on memrefs is written out (loops/softmax.cpp);
//  * memref.expand_shape that makes several dynamic sizes of one is a reinterpret_cast;
//  * memref.subview that takes steps and drops dimensions does so one after the other; where it drops some of
//    size 1 and keeps others, the result's shape says which;
//  * arith.floordivsi of more than 64 bits, which is expanded with a -1 of 64, is written out;
//  * vector.print of numbers of 4 to 8 bits calls a function of LLVM's; they are printed as f32;
//  * scf.for whose constant bounds are further apart than any number of their type is taken for one that ends
//    before it starts: it counts in numbers of twice as many bits. Loops over index, and those whose bounds
//    become constants later, stay as they are.
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"
#include "loops/softmax.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Tensors are not there any more; offload-check-input refuses numbers that have no exponentials.
bool isWritten(linalg::SoftmaxOp op) {
  return op.hasPureBufferSemantics() && isa<FloatType>(op.getInputOperandType().getElementType());
}

bool isLowered(memref::ExpandShapeOp op) {
  return llvm::none_of(op.getReassociationIndices(), [&](ArrayRef<int64_t> group) {
    return llvm::count_if(group, [&](int64_t i) { return op.getResultType().isDynamicDim(unsigned(i)); }) > 1;
  });
}

/// Of memory whose strides the run tells; `type` may promise more of them.
void replaceByView(Operation *op, MemRefType type, memref::ExtractStridedMetadataOp whole, Value offset,
                   ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides) {
  OpBuilder b(op);
  SmallVector<int64_t> unknown(sizes.size(), ShapedType::kDynamic);
  auto layout = StridedLayoutAttr::get(op->getContext(), ShapedType::kDynamic, unknown);
  auto open = MemRefType::get(type.getShape(), type.getElementType(), layout, type.getMemorySpace());
  Value view = memref::ReinterpretCastOp::create(b, op->getLoc(), open, whole.getBaseBuffer(),
                                                 OpFoldResult(offset), sizes, strides);
  op->replaceAllUsesWith(memref::CastOp::create(b, op->getLoc(), type, view));
  op->erase();
}

void write(memref::ExpandShapeOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefType type = op.getResultType();
  auto whole = memref::ExtractStridedMetadataOp::create(b, loc, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape(), strides(sizes.size());
  for (auto [number, group] : llvm::enumerate(op.getReassociationIndices())) {
    Value stride = whole.getStrides()[number];
    for (int64_t i : llvm::reverse(group)) {
      strides[i] = stride;
      stride = arith::MulIOp::create(b, loc, stride, getValueOrCreateConstantIndexOp(b, loc, sizes[i]))
                   .getResult();
    }
  }
  replaceByView(op, type, whole, whole.getOffset(), sizes, strides);
}

/// Are fewer dimensions dropped than there are of size 1? MLIR then chooses by comparing the result's strides
/// with the source's. Where these are not known it takes the first ones, whatever the result's shape says.
bool isAmbiguous(memref::SubViewOp op) {
  int64_t dropped = op.getSourceType().getRank() - op.getType().getRank(), offset;
  SmallVector<int64_t> strides;
  return dropped > 0 && llvm::count(op.getStaticSizes(), 1) > dropped &&
         (failed(op.getType().getStridesAndOffset(strides, offset)) ||
          llvm::any_of(strides, ShapedType::isDynamic));
}

/// Steps make strides differ: MLIR finds no dimension to drop, and goes on without an answer.
bool isLowered(memref::SubViewOp op) {
  return op.getSourceType().getRank() == op.getType().getRank() ||
         (llvm::all_of(op.getMixedStrides(), isOneInteger) && !isAmbiguous(op));
}

/// The same view with the dimensions that the result's shape has.
void writeByShape(memref::SubViewOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefType type = op.getType();
  auto times = [&](Value value, OpFoldResult factor) -> Value {
    return arith::MulIOp::create(b, loc, value, getValueOrCreateConstantIndexOp(b, loc, factor));
  };
  auto whole = memref::ExtractStridedMetadataOp::create(b, loc, op.getSource());
  SmallVector<OpFoldResult> starts = op.getMixedOffsets(), steps = op.getMixedStrides(),
                            all = op.getMixedSizes(), sizes, strides;
  Value offset = whole.getOffset();
  for (auto [i, stride] : llvm::enumerate(whole.getStrides())) {
    offset = arith::AddIOp::create(b, loc, offset, times(stride, starts[i]));
    // Any dimension of size 1 will do: its stride is never used.
    if (sizes.size() < type.getShape().size() && type.getDimSize(sizes.size()) == op.getStaticSizes()[i]) {
      sizes.push_back(all[i]);
      strides.push_back(times(stride, steps[i]));
    }
  }
  replaceByView(op, type, whole, offset, sizes, strides);
}

void write(memref::SubViewOp op) {
  if (isAmbiguous(op))
    return writeByShape(op);
  OpBuilder b(op);
  Value stepped = memref::SubViewOp::create(b, op.getLoc(), op.getSource(), op.getMixedOffsets(),
                                            op.getMixedSizes(), op.getMixedStrides());
  SmallVector<OpFoldResult> zeros(op.getMixedSizes().size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(zeros.size(), b.getIndexAttr(1));
  Value dropped =
      memref::SubViewOp::create(b, op.getLoc(), op.getType(), stepped, zeros, op.getMixedSizes(), ones);
  op.replaceAllUsesWith(dropped);
  op.erase();
}

bool isLowered(arith::FloorDivSIOp op) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(op.getType()));
  return !type || type.getWidth() <= 64;
}

/// The quotient towards zero, and one less where the rest has the sign that the divisor has not.
void write(arith::FloorDivSIOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(op.getType()));
  Value quotient = arith::DivSIOp::create(b, loc, op.getLhs(), op.getRhs());
  Value rest = arith::RemSIOp::create(b, loc, op.getLhs(), op.getRhs());
  Value signs = arith::XOrIOp::create(b, loc, rest, op.getRhs());
  Value differ = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, signs, zero);
  Value remains = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, rest, zero);
  Value less = arith::AndIOp::create(b, loc, differ, remains);
  Value one = arith::ExtUIOp::create(b, loc, op.getType(), less);
  op.replaceAllUsesWith(arith::SubIOp::create(b, loc, quotient, one).getResult());
  op.erase();
}

bool isLowered(vector::PrintOp op) {
  auto type = op.getSource() ? dyn_cast<FloatType>(getElementTypeOrSelf(op.getPrintType())) : FloatType();
  return !type || type.getWidth() > 8;
}

/// f32 has all of them.
void write(vector::PrintOp op) {
  OpBuilder b(op);
  Type type = op.getPrintType(), f32 = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    f32 = vector.clone(f32);
  op.getSourceMutable().assign(arith::ExtFOp::create(b, op.getLoc(), f32, op.getSource()));
}

/// A loop over index is left as it is: there is no wider type for it.
bool isLowered(scf::ForOp op) {
  APInt lower, upper;
  bool wraps = false;
  if (op.getUnsignedCmp() || !isa<IntegerType>(op.getInductionVar().getType()) ||
      !matchPattern(op.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(op.getUpperBound(), m_ConstantInt(&upper)))
    return true;
  (void)upper.ssub_ov(lower, wraps);
  return !wraps;
}

void write(scf::ForOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value place = op.getInductionVar();
  Type type = place.getType(), wide = b.getIntegerType(2 * type.getIntOrFloatBitWidth());
  auto widened = [&](Value value) -> Value { return arith::ExtSIOp::create(b, loc, wide, value); };
  op.setLowerBound(widened(op.getLowerBound()));
  op.setUpperBound(widened(op.getUpperBound()));
  op.setStep(widened(op.getStep()));
  place.setType(wide);
  b.setInsertionPointToStart(op.getBody());
  auto narrow = arith::TruncIOp::create(b, loc, type, place);
  place.replaceAllUsesExcept(narrow, narrow);
}

struct MissingLowerings : public PassWrapper<MissingLowerings, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MissingLowerings)

  MissingLowerings() = default;
  MissingLowerings(const MissingLowerings &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-missing-lowerings"; }
  StringRef getDescription() const final { return "Write out what MLIR has no lowering for"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, gpu::GPUDialect, math::MathDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallPtrSet<Operation *, 4> inKernels = calledFromKernels(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op); softmax && withSoftmax && isWritten(softmax))
        writeSoftmax(softmax, !inKernels.contains(op->getParentOfType<func::FuncOp>()));
      else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op); expand && !isLowered(expand))
        write(expand);
      else if (auto view = dyn_cast<memref::SubViewOp>(op); view && !isLowered(view))
        write(view);
      else if (auto division = dyn_cast<arith::FloorDivSIOp>(op); division && !isLowered(division))
        write(division);
      else if (auto loop = dyn_cast<scf::ForOp>(op); loop && !isLowered(loop))
        write(loop);
      else if (auto print = dyn_cast<vector::PrintOp>(op); print && !isLowered(print))
        write(print);
    });
  }

  Option<bool> withSoftmax{*this, "softmax", llvm::cl::desc("Write linalg.softmax out"),
                           llvm::cl::init(true)};
};

} // namespace

void registerMissingLoweringsPass() { PassRegistration<MissingLowerings>(); }

} // namespace offload
