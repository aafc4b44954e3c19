//===- sparse_products.cpp - Products of sparse operands in host code -------===//

#include "host/sparse_pattern.h"

using namespace mlir;

namespace offload {
namespace {

/// C = op(A) op(B) + C in all its forms, and the questions for the sizes of their buffers. The functions take
/// what the operations have, in one order: the descriptor of an SpGEMM, the modes, the operands, the type to
/// compute in, a buffer's size, the buffer.
template <typename Op> struct AnyProductPattern : public SparsePattern<Op> {
  using SparsePattern<Op>::SparsePattern;

  LogicalResult callProduct(ConversionPatternRewriter &b, Op op, typename Op::Adaptor adaptor,
                            StringRef name) const {
    FailureOr<int32_t> compute = computeTypeOf(op, op.getComputeType());
    if (failed(compute) || failed(checkBuffers(op)))
      return failure();
    SmallVector<Value> arguments, matrices, buffer;
    for (auto [original, converted] : llvm::zip(op->getOperands(), adaptor.getOperands())) {
      Type type = original.getType();
      if (isa<gpu::SparseSpGEMMOpHandleType>(type))
        arguments.push_back(converted);
      else if (isa<gpu::SparseSpMatHandleType, gpu::SparseDnTensorHandleType>(type))
        matrices.push_back(converted);
      else if (isa<MemRefType>(type))
        buffer.push_back(this->address(b, op, original, converted));
      else if (type.isIndex())
        buffer.push_back(converted);
    }
    for (StringRef mode : {"modeA", "modeB"})
      if (auto given = op->template getAttrOfType<gpu::TransposeModeAttr>(mode))
        arguments.push_back(this->number(b, op, int64_t(given.getValue())));
    arguments.append(matrices);
    arguments.push_back(this->number(b, op, *compute));
    arguments.append(buffer);
    bool hasSize = llvm::any_of(op->getResultTypes(), [](Type type) { return type.isIndex(); });
    this->call(b, op, adaptor, name, hasSize ? b.getI64Type() : Type(), arguments);
    return success();
  }
};

template <typename Op> struct ProductPattern : public AnyProductPattern<Op> {
  ProductPattern(const LLVMTypeConverter &converter, StringRef name)
      : AnyProductPattern<Op>(converter), name(name) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    return this->callProduct(b, op, adaptor, name);
  }
  StringRef name;
};

/// Whether an SpMM is one with a 2:4 matrix: the matrix says, or else the number of buffers does.
template <typename Op> FailureOr<bool> isTwoToFour(Op op, size_t buffers) {
  Made made = madeAs(op.getSpmatA());
  bool twoToFour = made == Made::TwoToFour || (made == Made::Unseen && buffers == 3);
  if (buffers != (twoToFour ? 3 : 1))
    return op.emitOpError() << "has " << buffers
                            << " buffers; a 2:4 sparse matrix needs 3, every other one 1";
  return twoToFour;
}

struct SpMMBufferSizePattern : public AnyProductPattern<gpu::SpMMBufferSizeOp> {
  using AnyProductPattern::AnyProductPattern;
  LogicalResult matchAndRewrite(gpu::SpMMBufferSizeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    FailureOr<bool> twoToFour = isTwoToFour(op, op.getBufferSzs().size());
    if (failed(twoToFour))
      return failure();
    if (!*twoToFour)
      return callProduct(b, op, adaptor, "mgpuSpMMBufferSize");
    auto maker = op.getSpmatA().getDefiningOp<gpu::Create2To4SpMatOp>();
    if (!maker)
      return op.emitOpError(
          "does not see the gpu.create_2to4_spmat that made its matrix, which says how it is "
          "pruned: put both into one function");
    // CUSPARSE_COMPUTE_16F and CUSPARSE_COMPUTE_32I.
    if (!op.getComputeType().isF16() && !op.getComputeType().isInteger(32))
      return op.emitOpError()
             << "computes in " << op.getComputeType()
             << "; with a 2:4 sparse matrix it can compute in f16, which keeps sums in f32, and "
                "i32";
    Value modeA = number(b, op, int64_t(op.getModeA())), modeB = number(b, op, int64_t(op.getModeB()));
    Stream stream = streamOf(b, op, adaptor);
    Value places = sizes(b, op, 3);
    callRuntime(b, op, "mgpuCuSparseLtSpMMBufferSize", {},
                {places, modeA, modeB, adaptor.getSpmatA(), adaptor.getDnmatB(), adaptor.getDnmatC(),
                 number(b, op, op.getComputeType().isInteger(32)),
                 number(b, op, int64_t(maker.getPruneFlag())), stream.value});
    waitFor(b, op, stream);
    finish(b, op, stream, loadSizes(b, op, places, 3));
    return success();
  }
};

struct SpMMPattern : public AnyProductPattern<gpu::SpMMOp> {
  using AnyProductPattern::AnyProductPattern;
  LogicalResult matchAndRewrite(gpu::SpMMOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    FailureOr<bool> twoToFour = isTwoToFour(op, op.getBuffers().size());
    if (failed(twoToFour) || failed(checkBuffers(op)))
      return failure();
    if (!*twoToFour)
      return callProduct(b, op, adaptor, "mgpuSpMM");
    SmallVector<Value> operands = {adaptor.getSpmatA(), adaptor.getDnmatB(), adaptor.getDnmatC()};
    for (auto [original, converted] : llvm::zip(op.getBuffers(), adaptor.getBuffers()))
      operands.push_back(address(b, op, original, converted));
    call(b, op, adaptor, "mgpuCuSparseLtSpMM", {}, operands);
    return success();
  }
};

struct SpGEMMWorkPattern : public AnyProductPattern<gpu::SpGEMMWorkEstimationOrComputeOp> {
  using AnyProductPattern::AnyProductPattern;
  LogicalResult matchAndRewrite(gpu::SpGEMMWorkEstimationOrComputeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    bool computes = op.getKind() == gpu::SpGEMMWorkEstimationOrComputeKind::COMPUTE;
    return callProduct(b, op, adaptor, computes ? "mgpuSpGEMMCompute" : "mgpuSpGEMMWorkEstimation");
  }
};

struct SpGEMMCreateDescrPattern : public SparsePattern<gpu::SpGEMMCreateDescrOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::SpGEMMCreateDescrOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    call(b, op, adaptor, "mgpuSpGEMMCreateDescr", pointer(), {});
    return success();
  }
};

struct SpGEMMDestroyDescrPattern : public SparsePattern<gpu::SpGEMMDestroyDescrOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::SpGEMMDestroyDescrOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    call(b, op, adaptor, "mgpuSpGEMMDestroyDescr", {}, {adaptor.getDesc()});
    return success();
  }
};

} // namespace

void populateSparseProductPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ProductPattern<gpu::SpMVBufferSizeOp>>(converter, "mgpuSpMVBufferSize");
  patterns.add<ProductPattern<gpu::SpMVOp>>(converter, "mgpuSpMV");
  patterns.add<ProductPattern<gpu::SDDMMBufferSizeOp>>(converter, "mgpuSDDMMBufferSize");
  patterns.add<ProductPattern<gpu::SDDMMOp>>(converter, "mgpuSDDMM");
  patterns.add<ProductPattern<gpu::SpGEMMCopyOp>>(converter, "mgpuSpGEMMCopy");
  patterns.add<SpMMBufferSizePattern, SpMMPattern, SpGEMMWorkPattern, SpGEMMCreateDescrPattern,
               SpGEMMDestroyDescrPattern>(converter);
}

} // namespace offload
