//===- host_memory.cpp - Device memory in host code -----------------------===//
//
// Patterns of gpu.alloc, dealloc, memcpy, memset, host_register and host_unregister.
//
//===----------------------------------------------------------------------===//

#include "host_lowering.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

using namespace mlir;

namespace offload {
namespace {

/// Bytes per element of a memref in memory, or failure for types without a whole number of bytes.
FailureOr<int64_t> elementBytes(MemRefType type) {
  Type element = type.getElementType();
  if (auto complex = dyn_cast<ComplexType>(element)) {
    unsigned bits = complex.getElementType().getIntOrFloatBitWidth();
    return int64_t(bits / 8) * 2;
  }
  if (element.isIndex())
    return 8;
  if (!element.isIntOrFloat())
    return failure();
  return int64_t(llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
}

/// The number of elements of a memref value.
Value elementCount(ConversionPatternRewriter &rewriter, Location loc, MemRefType type, Value descriptor) {
  MemRefDescriptor memref(descriptor);
  Type index = rewriter.getI64Type();
  Value count = constant(rewriter, loc, index, 1);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value size = type.isDynamicDim(i) ? memref.size(rewriter, loc, i)
                                      : constant(rewriter, loc, index, type.getDimSize(i));
    count = LLVM::MulOp::create(rewriter, loc, count, size);
  }
  return count;
}

/// One gap-free run of memory in the order of its indices?
bool isContiguous(MemRefType type) {
  return type.getLayout().isIdentity() || memref::isStaticShapeAndContiguousRowMajor(type);
}

struct AllocPattern : public HostPattern<gpu::AllocOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::AllocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    if (!isConvertibleAndHasIdentityMaps(type))
      return rewriter.notifyMatchFailure(op, "needs a memref with the identity layout");
    SmallVector<Value> shape, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getDynamicSizes(), rewriter, shape, strides, bytes);
    Stream stream = streamOf(rewriter, op, adaptor);
    Value shared = constant(rewriter, loc, rewriter.getI8Type(), op.getHostShared());
    Value memory =
        callRuntime(rewriter, op, "mgpuMemAlloc", pointerType(getContext()), {bytes, stream.value, shared});
    waitFor(rewriter, op, stream);
    Type pointer = getTypeConverter()->convertType(
        LLVM::LLVMPointerType::get(getContext(), *getTypeConverter()->getMemRefAddressSpace(type)));
    if (memory.getType() != pointer)
      memory = LLVM::AddrSpaceCastOp::create(rewriter, loc, pointer, memory);
    Value descriptor = createMemRefDescriptor(loc, type, memory, memory, shape, strides, rewriter);
    finish(rewriter, op, stream, {descriptor});
    return success();
  }
};

struct DeallocPattern : public HostPattern<gpu::DeallocOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::DeallocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Stream stream = streamOf(rewriter, op, adaptor);
    Value memory = MemRefDescriptor(adaptor.getMemref()).allocatedPtr(rewriter, op.getLoc());
    callRuntime(rewriter, op, "mgpuMemFree", {}, {memory, stream.value});
    waitFor(rewriter, op, stream);
    finish(rewriter, op, stream);
    return success();
  }
};

struct MemcpyPattern : public HostPattern<gpu::MemcpyOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::MemcpyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto to = cast<MemRefType>(op.getDst().getType()), from = cast<MemRefType>(op.getSrc().getType());
    FailureOr<int64_t> width = elementBytes(from);
    if (failed(width) || !isContiguous(to) || !isContiguous(from))
      return op.emitOpError(
          "copies between contiguous memrefs of numbers only; copy strided views in a kernel");
    Stream stream = streamOf(rewriter, op, adaptor);
    Value bytes = LLVM::MulOp::create(rewriter, loc, elementCount(rewriter, loc, from, adaptor.getSrc()),
                                      constant(rewriter, loc, getIndexType(), *width));
    Value target = MemRefDescriptor(adaptor.getDst()).bufferPtr(rewriter, loc, *getTypeConverter(), to);
    Value source = MemRefDescriptor(adaptor.getSrc()).bufferPtr(rewriter, loc, *getTypeConverter(), from);
    callRuntime(rewriter, op, "mgpuMemcpy", {}, {target, source, bytes, stream.value});
    waitFor(rewriter, op, stream);
    finish(rewriter, op, stream);
    return success();
  }
};

struct MemsetPattern : public HostPattern<gpu::MemsetOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::MemsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getDst().getType());
    FailureOr<int64_t> width = elementBytes(type);
    Type element = adaptor.getValue().getType();
    bool scalar = element.isIntOrFloat();
    if (failed(width) || !isContiguous(type) || !scalar || *width > 8 || !llvm::isPowerOf2_64(*width))
      return op.emitOpError("sets contiguous memrefs of 8, 16, 32 or 64-bit elements only; use a kernel");
    Stream stream = streamOf(rewriter, op, adaptor);
    Value value = adaptor.getValue();
    Type word = rewriter.getIntegerType(unsigned(*width) * 8);
    if (!element.isInteger())
      value = LLVM::BitcastOp::create(rewriter, loc, word, value);
    else if (element != word)
      value = LLVM::ZExtOp::create(rewriter, loc, word, value);
    Value target = MemRefDescriptor(adaptor.getDst()).bufferPtr(rewriter, loc, *getTypeConverter(), type);
    Value count = elementCount(rewriter, loc, type, adaptor.getDst());
    std::string name = ("mgpuMemset" + Twine(*width * 8)).str();
    callRuntime(rewriter, op, name, {}, {target, value, count, stream.value});
    waitFor(rewriter, op, stream);
    finish(rewriter, op, stream);
    return success();
  }
};

template <typename Op> struct RegisterPattern : public ConvertOpToLLVMPattern<Op> {
  RegisterPattern(const LLVMTypeConverter &converter, StringRef name)
      : ConvertOpToLLVMPattern<Op>(converter), name(name) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<UnrankedMemRefType>(op.getValue().getType());
    Value bytes = this->getSizeInBytes(op.getLoc(), type.getElementType(), rewriter);
    SmallVector<Value> arguments(this->getTypeConverter()->promoteOperands(op.getLoc(), op->getOperands(),
                                                                           adaptor.getOperands(), rewriter));
    arguments.push_back(bytes);
    callRuntime(rewriter, op, name, {}, arguments);
    rewriter.eraseOp(op);
    return success();
  }
  StringRef name;
};

} // namespace

void populateMemoryPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<AllocPattern, DeallocPattern, MemcpyPattern, MemsetPattern>(converter);
  patterns.add<RegisterPattern<gpu::HostRegisterOp>>(converter, "mgpuMemHostRegisterMemRef");
  patterns.add<RegisterPattern<gpu::HostUnregisterOp>>(converter, "mgpuMemHostUnregisterMemRef");
}

} // namespace offload
