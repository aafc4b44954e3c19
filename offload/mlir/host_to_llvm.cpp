//===- host_to_llvm.cpp - offload-host-to-llvm ----------------------------===//
//
// Lowers host code to the LLVM dialect; the gpu dialect's host operations become calls to the mgpu runtime
// (mgpu.h). Differences from upstream's gpu-to-llvm:
//
//  * An async token is a stream, everywhere: through block arguments, loops and calls. An operation with
//  several
//    dependencies runs on the first one's stream after waiting for the others. Streams belong to a scope of
//    the function that created them (mgpuScope) and go back when it returns; waiting for a token twice is
//    fine.
//  * Operations without a token run on the calling thread's own stream, and the host waits for them.
//  * A launch names a kernel slot; the runtime loads the module when it is first needed. No constructors.
//  * Argument arrays live in the entry block: a launch in a loop does not grow the stack.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kScopeBytes = 8 + 8 * 14; // sizeof(mgpuScope)

Type pointerType(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

/// Calls a runtime function, declaring it where it is new. `result` may be null for void.
Value callRuntime(OpBuilder &b, Operation *anchor, StringRef name, Type result, ValueRange arguments) {
  auto module = anchor->getParentOfType<ModuleOp>();
  Type returned = result ? result : Type(LLVM::LLVMVoidType::get(b.getContext()));
  FailureOr<LLVM::LLVMFuncOp> callee =
      LLVM::lookupOrCreateFn(b, module, name, llvm::to_vector(arguments.getTypes()), returned);
  auto call = LLVM::CallOp::create(b, anchor->getLoc(), *callee, arguments);
  return result ? call.getResult() : Value();
}

Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value));
}

Value null(OpBuilder &b, Location loc) { return LLVM::ZeroOp::create(b, loc, pointerType(b.getContext())); }

/// The entry block of the function around an operation; allocas go there.
Block &entryBlock(Operation *op) {
  return op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
}

Value entryAlloca(OpBuilder &b, Operation *op, Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&entryBlock(op));
  Value size = constant(b, op->getLoc(), b.getI64Type(), count);
  return LLVM::AllocaOp::create(b, op->getLoc(), pointerType(b.getContext()), type, size, /*alignment=*/16);
}

/// The mgpuScope of the function around an operation (made by addScopes).
Value scopeOf(Operation *op) {
  for (auto candidate : entryBlock(op).getOps<LLVM::AllocaOp>())
    if (candidate->hasAttr(kScope))
      return candidate;
  llvm_unreachable("addScopes gives every function with tokens a scope");
}

/// Where an operation runs. With a token or dependencies: their stream, after all of them; otherwise the
/// thread's stream (NULL).
struct Stream {
  Value value;
  bool wait; // the host waits for it: the operation has no token
};

Stream streamFor(OpBuilder &b, Operation *op, bool hasToken, ValueRange dependencies) {
  Type pointer = pointerType(b.getContext());
  if (dependencies.empty()) {
    if (!hasToken)
      return {null(b, op->getLoc()), true};
    return {callRuntime(b, op, "mgpuScopeStream", pointer, {scopeOf(op)}), false};
  }
  Value stream = dependencies.front();
  for (Value other : dependencies.drop_front())
    if (other != stream)
      callRuntime(b, op, "mgpuStreamWaitStream", {}, {stream, other});
  return {stream, !hasToken};
}

void waitFor(OpBuilder &b, Operation *op, Stream stream) {
  if (stream.wait)
    callRuntime(b, op, "mgpuStreamSynchronize", {}, {stream.value});
}

template <typename Op> struct HostPattern : public ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  /// Replaces the operation by its other results and, where it has one, its token.
  static void finish(ConversionPatternRewriter &rewriter, Op op, Stream stream, ValueRange results = {}) {
    SmallVector<Value> values(results);
    if (op.getAsyncToken())
      values.push_back(stream.value);
    rewriter.replaceOp(op, values);
  }

  /// Bytes per element of a memref in memory, or failure for types without a whole number of bytes.
  FailureOr<int64_t> elementBytes(MemRefType type) const {
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
  Value elementCount(ConversionPatternRewriter &rewriter, Location loc, MemRefType type,
                     Value descriptor) const {
    MemRefDescriptor memref(descriptor);
    Type index = this->getIndexType();
    Value count = constant(rewriter, loc, index, 1);
    for (int64_t i = 0; i < type.getRank(); ++i) {
      Value size = type.isDynamicDim(i) ? memref.size(rewriter, loc, i)
                                        : constant(rewriter, loc, index, type.getDimSize(i));
      count = LLVM::MulOp::create(rewriter, loc, count, size);
    }
    return count;
  }
};

/// One gap-free run of memory in the order of its indices?
bool isContiguous(MemRefType type) {
  return type.getLayout().isIdentity() || memref::isStaticShapeAndContiguousRowMajor(type);
}

struct WaitPattern : public HostPattern<gpu::WaitOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::WaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getAsyncToken()) {
      for (Value token : adaptor.getAsyncDependencies())
        callRuntime(rewriter, op, "mgpuStreamSynchronize", {}, {token});
      rewriter.eraseOp(op);
      return success();
    }
    // A wait starts a stream of its own: this is how a program says that what follows may overlap.
    Value stream = callRuntime(rewriter, op, "mgpuScopeStream", pointerType(getContext()), {scopeOf(op)});
    for (Value token : adaptor.getAsyncDependencies())
      callRuntime(rewriter, op, "mgpuStreamWaitStream", {}, {stream, token});
    rewriter.replaceOp(op, stream);
    return success();
  }
};

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
    Stream stream = streamFor(rewriter, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
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
    Stream stream = streamFor(rewriter, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
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
    Stream stream = streamFor(rewriter, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
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
    Stream stream = streamFor(rewriter, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
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

struct SetDevicePattern : public ConvertOpToLLVMPattern<gpu::SetDefaultDeviceOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::SetDefaultDeviceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    callRuntime(rewriter, op, "mgpuSetDefaultDevice", {}, {adaptor.getDevIndex()});
    rewriter.eraseOp(op);
    return success();
  }
};

std::string kernelSlotName(SymbolRefAttr kernel) {
  return ("offload_kernel." + kernel.getRootReference().getValue() + "." +
          kernel.getLeafReference().getValue())
      .str();
}

struct LaunchPattern : public HostPattern<gpu::LaunchFuncOp> {
  using HostPattern::HostPattern;
  LogicalResult matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type pointer = pointerType(getContext()), i64 = rewriter.getI64Type(), i32 = rewriter.getI32Type();

    SmallVector<Value> arguments(getTypeConverter()->promoteOperands(loc, op.getKernelOperands(),
                                                                     adaptor.getKernelOperands(), rewriter));
    SmallVector<Type> types(ValueRange(arguments).getTypes());
    auto record = LLVM::LLVMStructType::getLiteral(getContext(), types);
    size_t count = arguments.size();
    Value params = null(rewriter, loc);
    if (count) {
      Value values = entryAlloca(rewriter, op, record, 1);
      params = entryAlloca(rewriter, op, pointer, int64_t(count));
      for (auto [i, argument] : llvm::enumerate(arguments)) {
        Value field = LLVM::GEPOp::create(rewriter, loc, pointer, record, values,
                                          ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
        LLVM::StoreOp::create(rewriter, loc, argument, field);
        Value place =
            LLVM::GEPOp::create(rewriter, loc, pointer, pointer, params, ArrayRef<LLVM::GEPArg>{int32_t(i)});
        LLVM::StoreOp::create(rewriter, loc, field, place);
      }
    }

    Stream stream = streamFor(rewriter, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
    if (Value object = adaptor.getAsyncObject()) {
      // The author's own stream: work goes there, after the dependencies; nobody waits for it here.
      for (Value token : adaptor.getAsyncDependencies())
        callRuntime(rewriter, op, "mgpuStreamWaitStream", {}, {object, token});
      stream = {object, false};
    }
    Value zero = constant(rewriter, loc, i64, 0);
    auto dimension = [&](Value value) -> Value {
      if (!value)
        return zero;
      return value.getType() == i64 ? value : LLVM::ZExtOp::create(rewriter, loc, i64, value);
    };
    Value shared = adaptor.getDynamicSharedMemorySize();
    if (!shared)
      shared = constant(rewriter, loc, i32, 0);
    Value slot = LLVM::AddressOfOp::create(rewriter, loc, pointer, kernelSlotName(op.getKernel()));
    callRuntime(rewriter, op, "mgpuKernelLaunch", {},
                {slot, dimension(adaptor.getGridSizeX()), dimension(adaptor.getGridSizeY()),
                 dimension(adaptor.getGridSizeZ()), dimension(adaptor.getBlockSizeX()),
                 dimension(adaptor.getBlockSizeY()), dimension(adaptor.getBlockSizeZ()),
                 dimension(adaptor.getClusterSizeX()), dimension(adaptor.getClusterSizeY()),
                 dimension(adaptor.getClusterSizeZ()), shared, stream.value, params,
                 constant(rewriter, loc, i64, int64_t(count)), constant(rewriter, loc, i32, stream.wait)});
    finish(rewriter, op, stream);
    return success();
  }
};

/// A global whose initializer is an aggregate of the given values; `fill` returns them in order.
LLVM::GlobalOp aggregateGlobal(OpBuilder &b, Location loc, Type type, StringRef name, LLVM::Linkage linkage,
                               function_ref<Value(OpBuilder &)> fill) {
  auto global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false, linkage, name, Attribute());
  Block *block = b.createBlock(&global.getInitializerRegion());
  OpBuilder inside = OpBuilder::atBlockEnd(block);
  LLVM::ReturnOp::create(inside, loc, fill(inside));
  b.setInsertionPointAfter(global);
  return global;
}

Value stringAddress(OpBuilder &globals, OpBuilder &inside, Location loc, const Twine &name, StringRef text) {
  std::string symbol = name.str(), bytes = text.str();
  bytes.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(globals.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(globals, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, symbol,
                         globals.getStringAttr(bytes));
  return LLVM::AddressOfOp::create(inside, loc, pointerType(globals.getContext()), symbol);
}

/// Makes the table of modules and one slot per kernel that the host code launches.
void addSlots(ModuleOp module) {
  MLIRContext *context = module.getContext();
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Location loc = module.getLoc();
  Type pointer = pointerType(context);

  SmallVector<StringRef> modules;
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    modules.push_back(gpuModule.getName());
  for (StringRef name : {kImagesBegin, kImagesEnd}) {
    auto global = LLVM::GlobalOp::create(b, loc, b.getI8Type(), /*isConstant=*/true, LLVM::Linkage::External,
                                         name, Attribute());
    global.setVisibility_(LLVM::Visibility::Hidden);
  }

  // mgpuModuleSlot: images_begin, images_end, name, state.
  auto moduleSlot = LLVM::LLVMStructType::getLiteral(context, {pointer, pointer, pointer, pointer});
  auto table = LLVM::LLVMArrayType::get(moduleSlot, modules.size() + 1);
  aggregateGlobal(b, loc, table, kModuleTable, LLVM::Linkage::External, [&](OpBuilder &inside) {
    Value value = LLVM::ZeroOp::create(inside, loc, table);
    Value begin = LLVM::AddressOfOp::create(inside, loc, pointer, kImagesBegin);
    Value end = LLVM::AddressOfOp::create(inside, loc, pointer, kImagesEnd);
    OpBuilder globals = OpBuilder::atBlockBegin(module.getBody());
    for (auto [i, name] : llvm::enumerate(modules)) {
      int64_t row = int64_t(i);
      Value text = stringAddress(globals, inside, loc, "offload_module_name." + name, name);
      value = LLVM::InsertValueOp::create(inside, loc, value, begin, ArrayRef<int64_t>{row, 0});
      value = LLVM::InsertValueOp::create(inside, loc, value, end, ArrayRef<int64_t>{row, 1});
      value = LLVM::InsertValueOp::create(inside, loc, value, text, ArrayRef<int64_t>{row, 2});
    }
    return value;
  });

  // mgpuKernelSlot: module, name, state.
  auto kernelSlot = LLVM::LLVMStructType::getLiteral(context, {pointer, pointer, pointer});
  llvm::StringSet<> seen;
  module.walk([&](gpu::LaunchFuncOp launch) {
    std::string symbol = kernelSlotName(launch.getKernel());
    if (!seen.insert(symbol).second)
      return;
    int32_t row = int32_t(llvm::find(modules, launch.getKernelModuleName().getValue()) - modules.begin());
    b.setInsertionPointToEnd(module.getBody());
    aggregateGlobal(b, loc, kernelSlot, symbol, LLVM::Linkage::Internal, [&](OpBuilder &inside) {
      OpBuilder globals = OpBuilder::atBlockBegin(module.getBody());
      Value value = LLVM::ZeroOp::create(inside, loc, kernelSlot);
      Value base = LLVM::AddressOfOp::create(inside, loc, pointer, kModuleTable);
      Value slot = LLVM::GEPOp::create(inside, loc, pointer, moduleSlot, base, ArrayRef<LLVM::GEPArg>{row});
      Value text = stringAddress(globals, inside, loc, symbol + ".name", launch.getKernelName().getValue());
      value = LLVM::InsertValueOp::create(inside, loc, value, slot, ArrayRef<int64_t>{0});
      return Value(LLVM::InsertValueOp::create(inside, loc, value, text, ArrayRef<int64_t>{1}));
    });
  });
}

bool isToken(Type type) { return isa<gpu::AsyncTokenType>(type); }

/// Gives each function that makes tokens a scope, ended on every return. A token that a function returns is
/// waited for first: its stream goes back with the scope.
void addScopes(ModuleOp module) {
  module.walk([&](func::FuncOp function) {
    bool makesTokens = function
                           .walk([](Operation *op) {
                             bool any = llvm::any_of(op->getResultTypes(), isToken) && !isa<func::CallOp>(op);
                             return any ? WalkResult::interrupt() : WalkResult::advance();
                           })
                           .wasInterrupted();
    if (!makesTokens || function.isExternal())
      return;
    Location loc = function.getLoc();
    OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
    Type bytes = LLVM::LLVMArrayType::get(b.getI8Type(), kScopeBytes);
    Value one = constant(b, loc, b.getI64Type(), 1);
    auto scope = LLVM::AllocaOp::create(b, loc, pointerType(b.getContext()), bytes, one, /*alignment=*/16);
    scope->setAttr(kScope, b.getUnitAttr());
    LLVM::StoreOp::create(b, loc, LLVM::ZeroOp::create(b, loc, bytes), scope);
    function.walk([&](func::ReturnOp op) {
      OpBuilder atReturn(op);
      SmallVector<Value> tokens;
      for (Value operand : op.getOperands())
        if (isToken(operand.getType()))
          tokens.push_back(operand);
      if (!tokens.empty())
        gpu::WaitOp::create(atReturn, op.getLoc(), Type(), tokens);
      callRuntime(atReturn, op, "mgpuScopeEnd", {}, {scope});
    });
  });
}

struct HostToLLVM : public PassWrapper<HostToLLVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostToLLVM)

  StringRef getArgument() const final { return "offload-host-to-llvm"; }
  StringRef getDescription() const final { return "Lower host code to LLVM with calls to the mgpu runtime"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registerConvertToLLVMDependentDialectLoading(registry);
    registry.insert<LLVM::LLVMDialect, cf::ControlFlowDialect>();
  }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    addSlots(module);
    addScopes(module);

    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter converter(context, options);
    converter.addConversion([context](gpu::AsyncTokenType) { return pointerType(context); });
    populateGpuMemorySpaceAttributeConversions(converter, [](gpu::AddressSpace) { return 0; });
    LLVMConversionTarget target(*context);
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    target.markOpRecursivelyLegal<gpu::GPUModuleOp>();
    RewritePatternSet patterns(context);
    for (Dialect *dialect : context->getLoadedDialects())
      if (auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect))
        if (!isa<gpu::GPUDialect>(dialect))
          interface->populateConvertToLLVMConversionPatterns(target, converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    patterns.add<WaitPattern, AllocPattern, DeallocPattern, MemcpyPattern, MemsetPattern, SetDevicePattern,
                 LaunchPattern>(converter);
    patterns.add<RegisterPattern<gpu::HostRegisterOp>>(converter, "mgpuMemHostRegisterMemRef");
    patterns.add<RegisterPattern<gpu::HostUnregisterOp>>(converter, "mgpuMemHostUnregisterMemRef");
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    for (auto gpuModule : llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
      gpuModule.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};

} // namespace

void registerHostToLLVMPass() { PassRegistration<HostToLLVM>(); }

} // namespace offload
