//===- sparse_operands.cpp - Sparse and dense operands in host code ---------===//

#include "host/sparse_pattern.h"

#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

#include <optional>

using namespace mlir;

namespace offload {
namespace {

// sizeof of cuSPARSELt's descriptors with upstream's data behind them.
constexpr int64_t kDenseHandleBytes = 11032, kMatrixHandleBytes = 44104;

/// cudaDataType_t of a type that sparse operands can have.
std::optional<int32_t> dataType(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type)) {
    Type part = complex.getElementType();
    if (part.isF32())
      return 4;
    if (part.isF64())
      return 5;
    if (part.isF16())
      return 6;
    return part.isBF16() ? std::optional<int32_t>(15) : std::nullopt;
  }
  if (type.isF32())
    return 0;
  if (type.isF64())
    return 1;
  if (type.isF16())
    return 2;
  if (type.isBF16())
    return 14;
  if (type.isSignlessInteger(8) || type.isSignedInteger(8))
    return 3;
  if (type.isSignlessInteger(32) || type.isSignedInteger(32))
    return 10;
  return std::nullopt;
}

/// cusparseIndexType_t. 16 bits are without a sign.
std::optional<int32_t> indexType(Type type) {
  if (type.isIndex() || type.isSignlessInteger(64) || type.isSignedInteger(64))
    return 3;
  if (type.isSignlessInteger(32) || type.isSignedInteger(32))
    return 2;
  if (type.isSignlessInteger(16) || type.isUnsignedInteger(16))
    return 1;
  return std::nullopt;
}

/// Memory without gaps, in the order of its indices.
bool isContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getLayout().isIdentity() || memref::isStaticShapeAndContiguousRowMajor(type))
    return true;
  return type.getRank() == 1 && succeeded(type.getStridesAndOffset(strides, offset)) && strides[0] == 1;
}

/// Whether a handle goes to where another activation of its operation may be seen: a block argument, a
/// result.
bool leaves(Value handle) {
  // The last operation of a block is its terminator. (Operation::hasTrait does not know IsTerminator here:
  // its type identifier in this extension is not the one in libMLIR.)
  return llvm::any_of(handle.getUsers(), [](Operation *user) { return user == &user->getBlock()->back(); });
}

/// As upstream: multiplied by a 2:4 matrix, a dense one is made for that. Not where its handle leaves.
bool isForTwoToFour(Value dense) {
  return !leaves(dense) && llvm::any_of(dense.getUsers(), [](Operation *user) {
    auto product = dyn_cast<gpu::SpMMOp>(user);
    return product && madeAs(product.getSpmatA()) == Made::TwoToFour;
  });
}

} // namespace

FailureOr<int32_t> dataTypeOf(Operation *op, Value memref) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (std::optional<int32_t> code = dataType(type))
    return *code;
  return op->emitOpError() << "has values of type " << type
                           << "; sparse operations have f16, bf16, f32, f64, i8, i32 and complex numbers of "
                              "floats: convert the values first";
}

FailureOr<int32_t> indexTypeOf(Operation *op, Value memref) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (std::optional<int32_t> code = indexType(type))
    return *code;
  return op->emitOpError() << "has indices of type " << type
                           << "; they can be index, i64, i32 or i16 (without a sign): convert them first";
}

FailureOr<int32_t> computeTypeOf(Operation *op, Type type) {
  std::optional<int32_t> code = dataType(type);
  if (code && !type.isInteger(8))
    return *code;
  return op->emitOpError() << "computes in " << type
                           << "; it can compute in f16, bf16, f32, f64, i32 and complex numbers of floats";
}

LogicalResult checkBuffers(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (auto memref = dyn_cast<MemRefType>(type); memref && !isContiguous(memref))
      return op->emitOpError() << "needs contiguous memory, not " << memref
                               << ": copy the strided view first";
  return success();
}

Made madeAs(Value matrix) {
  Operation *maker = matrix.getDefiningOp();
  if (isa_and_nonnull<gpu::Create2To4SpMatOp>(maker))
    return Made::TwoToFour;
  return isa_and_nonnull<gpu::CreateCooOp, gpu::CreateCooAoSOp, gpu::CreateCsrOp, gpu::CreateCscOp,
                         gpu::CreateBsrOp>(maker)
             ? Made::Plain
             : Made::Unseen;
}

namespace {

struct CreateDnTensorPattern : public SparsePattern<gpu::CreateDnTensorOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::CreateDnTensorOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    ValueRange dims = adaptor.getDims();
    if (dims.size() != 1 && dims.size() != 2)
      return op.emitOpError() << "has " << dims.size()
                              << " sizes; a dense operand is a vector with one or a matrix with two";
    FailureOr<int32_t> type = dataTypeOf(op, op.getMemref());
    if (failed(type) || failed(checkBuffers(op)))
      return failure();
    SmallVector<Value> arguments(dims);
    arguments.push_back(address(b, op, op.getMemref(), adaptor.getMemref()));
    arguments.push_back(number(b, op, *type));
    if (dims.size() == 1 || !isForTwoToFour(op.getDnTensor())) {
      call(b, op, adaptor, dims.size() == 1 ? "mgpuCreateDnVec" : "mgpuCreateDnMat", pointer(), arguments);
      return success();
    }
    Value handle = entryAlloca(b, op, b.getI8Type(), kDenseHandleBytes);
    arguments.insert(arguments.begin(), handle);
    Stream stream = streamOf(b, op, adaptor);
    arguments.push_back(stream.value);
    callRuntime(b, op, "mgpuCreateCuSparseLtDnMat", {}, arguments);
    waitFor(b, op, stream);
    finish(b, op, stream, {handle});
    return success();
  }
};

struct DestroyDnTensorPattern : public SparsePattern<gpu::DestroyDnTensorOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::DestroyDnTensorOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto maker = op.getDnTensor().getDefiningOp<gpu::CreateDnTensorOp>();
    StringRef name = "mgpuDestroyDnMat";
    if (maker && maker.getDims().size() == 1)
      name = "mgpuDestroyDnVec";
    else if (maker && isForTwoToFour(op.getDnTensor()))
      name = "mgpuDestroyCuSparseLtDnMat";
    call(b, op, adaptor, name, {}, {adaptor.getDnTensor()});
    return success();
  }
};

/// create_coo, create_csr, create_csc, create_bsr: sizes, memrefs of indices, values.
template <typename Op> struct CreateMatrixPattern : public SparsePattern<Op> {
  CreateMatrixPattern(const LLVMTypeConverter &converter, StringRef name)
      : SparsePattern<Op>(converter), name(name) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    SmallVector<Value> arguments, memrefs, types;
    auto operands = llvm::zip(op->getOperands(), adaptor.getOperands());
    for (auto [original, converted] : operands)
      if (isa<MemRefType>(original.getType()))
        memrefs.push_back(original);
    FailureOr<int32_t> type = dataTypeOf(op, memrefs.back());
    if (failed(type) || failed(checkBuffers(op)))
      return failure();
    SmallVector<int32_t> codes;
    for (Value indices : ArrayRef<Value>(memrefs).drop_back()) {
      FailureOr<int32_t> code = indexTypeOf(op, indices);
      if (failed(code))
        return failure();
      codes.push_back(*code);
    }
    if constexpr (std::is_same_v<Op, gpu::CreateCooOp>) {
      if (codes[0] != codes[1])
        return op.emitOpError() << "has row indices of type " << memrefs[0].getType()
                                << " and column indices of " << memrefs[1].getType()
                                << "; both must have one element type";
      codes.pop_back();
    }
    for (auto [original, converted] : operands)
      if (isa<MemRefType>(original.getType()))
        arguments.push_back(this->address(b, op, original, converted));
      else if (!isa<gpu::AsyncTokenType>(original.getType()))
        arguments.push_back(converted);
    codes.push_back(*type);
    for (int32_t code : codes)
      arguments.push_back(this->number(b, op, code));
    this->call(b, op, adaptor, name, this->pointer(), arguments);
    return success();
  }
  StringRef name;
};

struct Create2To4Pattern : public SparsePattern<gpu::Create2To4SpMatOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::Create2To4SpMatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Type element = cast<MemRefType>(op.getMemref().getType()).getElementType();
    if (!element.isF16() && !element.isBF16() && !element.isInteger(8))
      return op.emitOpError() << "has values of type " << element
                              << "; a 2:4 sparse matrix has f16, bf16 or i8: convert the values first";
    if (leaves(op.getSpMat()))
      return op.emitOpError(
          "has a handle that is a block argument or a result; the handle of a 2:4 sparse matrix "
          "is memory of the function that makes it: make and destroy the matrix in one block");
    FailureOr<int32_t> type = dataTypeOf(op, op.getMemref());
    if (failed(type) || failed(checkBuffers(op)))
      return failure();
    Value handle = entryAlloca(b, op, b.getI8Type(), kMatrixHandleBytes);
    Stream stream = streamOf(b, op, adaptor);
    callRuntime(b, op, "mgpuCusparseLtCreate2To4SpMat", {},
                {handle, adaptor.getRows(), adaptor.getCols(),
                 address(b, op, op.getMemref(), adaptor.getMemref()), number(b, op, *type), stream.value});
    waitFor(b, op, stream);
    finish(b, op, stream, {handle});
    return success();
  }
};

struct DestroySpMatPattern : public SparsePattern<gpu::DestroySpMatOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::DestroySpMatOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    bool twoToFour = madeAs(op.getSpmat()) == Made::TwoToFour;
    call(b, op, adaptor, twoToFour ? "mgpuDestroyCuSparseLtSpMat" : "mgpuDestroySpMat", {},
         {adaptor.getSpmat()});
    return success();
  }
};

struct SpMatGetSizePattern : public SparsePattern<gpu::SpMatGetSizeOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::SpMatGetSizeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Stream stream = streamOf(b, op, adaptor);
    Value places = sizes(b, op, 3);
    callRuntime(b, op, "mgpuSpMatGetSize", {},
                {adaptor.getSpmat(), place(b, op, places, 0), place(b, op, places, 1),
                 place(b, op, places, 2), stream.value});
    waitFor(b, op, stream);
    finish(b, op, stream, loadSizes(b, op, places, 3));
    return success();
  }
};

struct SetCsrPointersPattern : public SparsePattern<gpu::SetCsrPointersOp> {
  using SparsePattern::SparsePattern;
  LogicalResult matchAndRewrite(gpu::SetCsrPointersOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    if (failed(checkBuffers(op)))
      return failure();
    call(b, op, adaptor, "mgpuSetCsrPointers", {},
         {adaptor.getSpmat(), address(b, op, op.getPositions(), adaptor.getPositions()),
          address(b, op, op.getCoordinates(), adaptor.getCoordinates()),
          address(b, op, op.getValues(), adaptor.getValues())});
    return success();
  }
};

} // namespace

void populateSparseOperandPatterns(LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  converter.addConversion([context](gpu::SparseDnTensorHandleType) { return pointerType(context); });
  converter.addConversion([context](gpu::SparseSpMatHandleType) { return pointerType(context); });
  converter.addConversion([context](gpu::SparseSpGEMMOpHandleType) { return pointerType(context); });
  patterns.add<CreateDnTensorPattern, DestroyDnTensorPattern, Create2To4Pattern, DestroySpMatPattern,
               SpMatGetSizePattern, SetCsrPointersPattern>(converter);
  patterns.add<CreateMatrixPattern<gpu::CreateCooOp>>(converter, "mgpuCreateCoo");
  patterns.add<CreateMatrixPattern<gpu::CreateCooAoSOp>>(converter, "mgpuCreateCooAoS");
  patterns.add<CreateMatrixPattern<gpu::CreateCsrOp>>(converter, "mgpuCreateCsr");
  patterns.add<CreateMatrixPattern<gpu::CreateCscOp>>(converter, "mgpuCreateCsc");
  patterns.add<CreateMatrixPattern<gpu::CreateBsrOp>>(converter, "mgpuCreateBsr");
}

} // namespace offload
