//===- memory.cpp - Device memory in host code ----------------------------===//
//
// Patterns of gpu.alloc, dealloc, memcpy, memset, host_register and host_unregister.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "names.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

using namespace mlir;

namespace offload {
namespace {

/// One gap-free run of memory in the order of its indices?
bool isContiguous(MemRefType type) {
  return type.getLayout().isIdentity() || memref::isStaticShapeAndContiguousRowMajor(type);
}

/// What the runtime is told of a memref of any layout: its first element, sizes and strides in elements.
struct View {
  Value first, sizes, strides;
};

/// Stores values into an array in the function's entry block; NULL for none.
Value arrayOf(OpBuilder &b, Operation *op, ArrayRef<Value> values) {
  if (values.empty())
    return null(b, op->getLoc());
  Type i64 = b.getI64Type(), pointer = pointerType(b.getContext());
  Value array = entryAlloca(b, op, i64, int64_t(values.size()));
  for (auto [i, value] : llvm::enumerate(values)) {
    Value place =
        LLVM::GEPOp::create(b, op->getLoc(), pointer, i64, array, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, op->getLoc(), value, place);
  }
  return array;
}

SmallVector<Value> sizesOf(OpBuilder &b, Location loc, MemRefType type, Value descriptor) {
  MemRefDescriptor memref(descriptor);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(type.isDynamicDim(i) ? memref.size(b, loc, i)
                                         : constant(b, loc, b.getI64Type(), type.getDimSize(i)));
  return sizes;
}

Value elementCount(OpBuilder &b, Location loc, MemRefType type, Value descriptor) {
  Value count = constant(b, loc, b.getI64Type(), 1);
  for (Value size : sizesOf(b, loc, type, descriptor))
    count = LLVM::MulOp::create(b, loc, count, size);
  return count;
}

/// The first address from this one on that is a multiple of a power of two.
Value alignedUp(OpBuilder &b, Location loc, Value pointer, int64_t alignment) {
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
  Value zero = constant(b, loc, b.getI64Type(), 0);
  Value negated = LLVM::SubOp::create(b, loc, zero, address);
  Value mask = constant(b, loc, b.getI64Type(), alignment - 1);
  Value missing = LLVM::AndOp::create(b, loc, negated, mask);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, missing);
}

struct AllocPattern : public HostPattern<gpu::AllocOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::AllocOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    if (!isConvertibleAndHasIdentityMaps(type))
      return op.emitOpError() << "of " << type
                              << ": allocate with the identity layout and take a view (memref.subview, "
                                 "memref.reinterpret_cast)";
    SmallVector<Value> shape, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getDynamicSizes(), rewriter, shape, strides, bytes);
    auto alignment = op->getAttrOfType<IntegerAttr>(kAlignment);
    if (alignment) {
      Value room = constant(rewriter, loc, bytes.getType(), alignment.getInt());
      bytes = LLVM::AddOp::create(rewriter, loc, bytes, room);
    }
    Stream stream = streamOf(rewriter, op, adaptor);
    Value shared = constant(rewriter, loc, rewriter.getI8Type(), op.getHostShared());
    Type plain = pointerType(getContext());
    Value memory = op->hasAttr(kWaitsLater)
                       ? callRuntime(rewriter, op, "mgpuMemAllocLater", plain, {bytes})
                       : callRuntime(rewriter, op, "mgpuMemAlloc", plain, {bytes, stream.value, shared});
    waitFor(rewriter, op, stream);
    if (op.getHostShared()) // host code may touch it
      callRuntime(rewriter, op, kCheckAllocation, {}, {memory, bytes});
    Type pointer = getTypeConverter()->convertType(
        LLVM::LLVMPointerType::get(getContext(), *getTypeConverter()->getMemRefAddressSpace(type)));
    if (memory.getType() != pointer)
      memory = LLVM::AddrSpaceCastOp::create(rewriter, loc, pointer, memory);
    Value first = alignment ? alignedUp(rewriter, loc, memory, alignment.getInt()) : memory;
    Value descriptor = createMemRefDescriptor(loc, type, memory, first, shape, strides, rewriter);
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
    if (op->hasAttr(kWaitsLater))
      callRuntime(rewriter, op, "mgpuMemFreeLater", {}, {memory});
    else
      callRuntime(rewriter, op, "mgpuMemFree", {}, {memory, stream.value});
    waitFor(rewriter, op, stream);
    finish(rewriter, op, stream);
    return success();
  }
};

/// Base of the patterns that touch arrays of any layout.
template <typename Op> struct ArrayPattern : public HostPattern<Op> {
  using HostPattern<Op>::HostPattern;

  /// The address of the first element.
  Value first(OpBuilder &b, Location loc, MemRefType type, Value descriptor) const {
    Value pointer = MemRefDescriptor(descriptor).bufferPtr(b, loc, *this->getTypeConverter(), type);
    Type plain = pointerType(b.getContext());
    return pointer.getType() == plain ? pointer : LLVM::AddrSpaceCastOp::create(b, loc, plain, pointer);
  }

  View view(OpBuilder &b, Operation *op, MemRefType type, Value descriptor) const {
    MemRefDescriptor memref(descriptor);
    SmallVector<Value> strides;
    for (int64_t i = 0; i < type.getRank(); ++i)
      strides.push_back(memref.stride(b, op->getLoc(), i));
    return {first(b, op->getLoc(), type, descriptor),
            arrayOf(b, op, sizesOf(b, op->getLoc(), type, descriptor)), arrayOf(b, op, strides)};
  }
};

/// What a size follows from: a constant, or a value, or that dimension of a memref.
struct Size {
  int64_t constant = -1;
  Value value;
  int64_t dimension = -1;
  bool operator==(const Size &other) const {
    return constant == other.constant && value == other.value && dimension == other.dimension;
  }
};

Size sizeOf(Value memref, int64_t dimension) {
  for (;;) {
    auto type = cast<MemRefType>(memref.getType());
    if (!type.isDynamicDim(dimension))
      return {type.getDimSize(dimension), {}, -1};
    auto alloc = memref.getDefiningOp<gpu::AllocOp>();
    if (!alloc)
      return {-1, memref, dimension};
    Value size = alloc.getDynamicSizes()[type.getDynamicDimIndex(dimension)];
    auto dim = size.getDefiningOp<memref::DimOp>();
    std::optional<int64_t> index = dim ? getConstantIntValue(dim.getIndex()) : std::nullopt;
    if (!index || !isa<MemRefType>(dim.getSource().getType()))
      return {-1, size, -1};
    memref = dim.getSource();
    dimension = *index;
  }
}

constexpr char kEqualShapes[] = "offload.equal_shapes";

struct MemcpyPattern : public ArrayPattern<gpu::MemcpyOp> {
  using ArrayPattern::ArrayPattern;
  LogicalResult matchAndRewrite(gpu::MemcpyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto to = cast<MemRefType>(op.getDst().getType()), from = cast<MemRefType>(op.getSrc().getType());
    if (!op->hasAttr(kEqualShapes))
      callRuntime(rewriter, op, "mgpuCheckShapes", {},
                  {constant(rewriter, loc, rewriter.getI64Type(), to.getRank()),
                   arrayOf(rewriter, op, sizesOf(rewriter, loc, to, adaptor.getDst())),
                   arrayOf(rewriter, op, sizesOf(rewriter, loc, from, adaptor.getSrc())),
                   textAddress(rewriter, op, placeOf(loc))});
    Stream stream = streamOf(rewriter, op, adaptor);
    Value width = getSizeInBytes(loc, from.getElementType(), rewriter);
    if (isContiguous(to) && isContiguous(from)) {
      Value count = elementCount(rewriter, loc, from, adaptor.getSrc());
      Value bytes = LLVM::MulOp::create(rewriter, loc, count, width);
      callRuntime(rewriter, op, "mgpuMemcpy", {},
                  {first(rewriter, loc, to, adaptor.getDst()), first(rewriter, loc, from, adaptor.getSrc()),
                   bytes, stream.value});
    } else {
      View target = view(rewriter, op, to, adaptor.getDst());
      View source = view(rewriter, op, from, adaptor.getSrc());
      callRuntime(rewriter, op, "mgpuMemcpyStrided", {},
                  {target.first, target.strides, source.first, source.strides, source.sizes,
                   constant(rewriter, loc, rewriter.getI64Type(), from.getRank()), width, stream.value});
    }
    waitFor(rewriter, op, stream);
    finish(rewriter, op, stream);
    return success();
  }
};

/// The width of an element that the runtime fills by value: whole words of 8 to 64 bits; 0 for others.
unsigned wordBits(Type element) {
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (bits == 1)
    return 8; // a byte in memory
  return bits >= 8 && bits <= 64 && llvm::isPowerOf2_32(bits) ? bits : 0;
}

struct MemsetPattern : public ArrayPattern<gpu::MemsetOp> {
  using ArrayPattern::ArrayPattern;
  LogicalResult matchAndRewrite(gpu::MemsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getDst().getType());
    Stream stream = streamOf(rewriter, op, adaptor);
    Value value = adaptor.getValue();
    if (unsigned bits = wordBits(value.getType()); bits && isContiguous(type)) {
      Type word = rewriter.getIntegerType(bits);
      if (!value.getType().isInteger())
        value = LLVM::BitcastOp::create(rewriter, loc, word, value);
      else if (value.getType() != word)
        value = LLVM::ZExtOp::create(rewriter, loc, word, value);
      callRuntime(rewriter, op, "mgpuMemset" + std::to_string(bits), {},
                  {first(rewriter, loc, type, adaptor.getDst()), value,
                   elementCount(rewriter, loc, type, adaptor.getDst()), stream.value});
    } else {
      Value element = entryAlloca(rewriter, op, value.getType(), 1);
      LLVM::StoreOp::create(rewriter, loc, value, element);
      View target = view(rewriter, op, type, adaptor.getDst());
      callRuntime(rewriter, op, "mgpuMemsetStrided", {},
                  {target.first, target.strides, target.sizes,
                   constant(rewriter, loc, rewriter.getI64Type(), type.getRank()), element,
                   getSizeInBytes(loc, type.getElementType(), rewriter), stream.value});
    }
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

void markEqualShapes(ModuleOp module) {
  module.walk([](gpu::MemcpyOp op) {
    int64_t rank = cast<MemRefType>(op.getDst().getType()).getRank();
    if (llvm::all_of(llvm::seq<int64_t>(0, rank),
                     [&](int64_t i) { return sizeOf(op.getDst(), i) == sizeOf(op.getSrc(), i); }))
      op->setAttr(kEqualShapes, UnitAttr::get(op.getContext()));
  });
}

void populateMemoryPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<AllocPattern, DeallocPattern, MemcpyPattern, MemsetPattern>(converter);
  patterns.add<RegisterPattern<gpu::HostRegisterOp>>(converter, "mgpuMemHostRegisterMemRef");
  patterns.add<RegisterPattern<gpu::HostUnregisterOp>>(converter, "mgpuMemHostUnregisterMemRef");
}

} // namespace offload
