//===- gpu_to_host.cpp - offload-gpu-to-host ------------------------------===//
//
// The device side of the host target: lowers one gpu.module to the LLVM dialect. GPU operations become calls
// to the functions of names.h, to which spmd.cpp gives their meaning once the module is LLVM IR; workgroup
// memory becomes globals with a known prefix. All memory spaces are one flat space here.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace offload {
namespace {

constexpr unsigned kWarpSize = 32; // MGPU_HOST_WARP_SIZE

/// Calls one of the stand-in functions of names.h, declaring it where it is new.
Value callStandIn(OpBuilder &builder, Location loc, Operation *anchor, StringRef name, Type result,
                  ValueRange arguments = {}) {
  auto module = anchor->getParentOfType<gpu::GPUModuleOp>();
  FailureOr<LLVM::LLVMFuncOp> callee =
      LLVM::lookupOrCreateFn(builder, module, name, llvm::to_vector(arguments.getTypes()), result);
  auto call = LLVM::CallOp::create(builder, loc, *callee, arguments);
  return call.getNumResults() ? call.getResult() : Value();
}

StringRef suffix(gpu::Dimension dimension) {
  return dimension == gpu::Dimension::x ? "x" : dimension == gpu::Dimension::y ? "y" : "z";
}

Value constant32(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), builder.getI32IntegerAttr(value));
}

Value standIn32(OpBuilder &builder, Operation *op, StringRef prefix, StringRef axis) {
  return callStandIn(builder, op->getLoc(), op, (prefix + axis).str(), builder.getI32Type());
}

/// The thread's linear id in its block: x fastest.
Value linearThread(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = standIn32(b, op, kThreadId, "x"), y = standIn32(b, op, kThreadId, "y"),
        z = standIn32(b, op, kThreadId, "z"), dx = standIn32(b, op, kBlockDim, "x"),
        dy = standIn32(b, op, kBlockDim, "y");
  Value plane = LLVM::AddOp::create(b, loc, LLVM::MulOp::create(b, loc, z, dy), y);
  return LLVM::AddOp::create(b, loc, LLVM::MulOp::create(b, loc, plane, dx), x);
}

Value blockThreads(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value plane =
      LLVM::MulOp::create(b, loc, standIn32(b, op, kBlockDim, "x"), standIn32(b, op, kBlockDim, "y"));
  return LLVM::MulOp::create(b, loc, plane, standIn32(b, op, kBlockDim, "z"));
}

/// An i32 as the value of an operation of type index, which has 32 or 64 bits here.
void replaceByIndex(ConversionPatternRewriter &rewriter, Operation *op, Type index, Value value) {
  if (value.getType() == index)
    rewriter.replaceOp(op, value);
  else
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, index, value);
}

/// thread_id, block_id, block_dim, grid_dim.
template <typename Op> struct IdPattern : public ConvertOpToLLVMPattern<Op> {
  IdPattern(const LLVMTypeConverter &converter, StringRef prefix)
      : ConvertOpToLLVMPattern<Op>(converter), prefix(prefix) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value id = standIn32(rewriter, op, prefix, suffix(op.getDimension()));
    replaceByIndex(rewriter, op, this->getTypeConverter()->getIndexType(), id);
    return success();
  }
  StringRef prefix;
};

/// lane_id, subgroup_id, num_subgroups, subgroup_size: from the linear thread id.
template <typename Op> struct WarpPattern : public ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value size = constant32(rewriter, loc, kWarpSize), value = size;
    if constexpr (std::is_same_v<Op, gpu::LaneIdOp>) {
      value = LLVM::URemOp::create(rewriter, loc, linearThread(rewriter, op), size);
    } else if constexpr (std::is_same_v<Op, gpu::SubgroupIdOp>) {
      value = LLVM::UDivOp::create(rewriter, loc, linearThread(rewriter, op), size);
    } else if constexpr (std::is_same_v<Op, gpu::NumSubgroupsOp>) {
      Value rounded = LLVM::AddOp::create(rewriter, loc, blockThreads(rewriter, op),
                                          constant32(rewriter, loc, kWarpSize - 1));
      value = LLVM::UDivOp::create(rewriter, loc, rounded, size);
    }
    replaceByIndex(rewriter, op, this->getTypeConverter()->getIndexType(), value);
    return success();
  }
};

struct BarrierPattern : public ConvertOpToLLVMPattern<gpu::BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::BarrierOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    callStandIn(rewriter, op.getLoc(), op, kBarrier, LLVM::LLVMVoidType::get(op.getContext()));
    rewriter.eraseOp(op);
    return success();
  }
};

/// gpu.shuffle as CUDA's shfl: the source lane lies in the segment of `width` lanes around the own lane, or
/// the value stays and `valid` is false.
struct ShufflePattern : public ConvertOpToLLVMPattern<gpu::ShuffleOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = adaptor.getValue().getType();
    Type i64 = rewriter.getI64Type();
    unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
    if (bits == 0 || bits > 64)
      return rewriter.notifyMatchFailure(op, "expected a scalar of at most 64 bits");

    Value thread = linearThread(rewriter, op);
    Value warp = constant32(rewriter, loc, kWarpSize);
    Value lane = LLVM::URemOp::create(rewriter, loc, thread, warp);
    Value offset = adaptor.getOffset(), width = adaptor.getWidth();
    Value first = LLVM::SubOp::create(rewriter, loc, lane, LLVM::URemOp::create(rewriter, loc, lane, width));
    Value source;
    switch (op.getMode()) {
    case gpu::ShuffleMode::XOR:
      source = LLVM::XOrOp::create(rewriter, loc, lane, offset);
      break;
    case gpu::ShuffleMode::UP:
      source = LLVM::SubOp::create(rewriter, loc, lane, offset);
      break;
    case gpu::ShuffleMode::DOWN:
      source = LLVM::AddOp::create(rewriter, loc, lane, offset);
      break;
    case gpu::ShuffleMode::IDX:
      source = LLVM::AddOp::create(rewriter, loc, first, offset);
      break;
    }
    // One unsigned comparison checks both ends: source - first < width.
    Value place = LLVM::SubOp::create(rewriter, loc, source, first);
    Value valid = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::ult, place, width);
    Value chosen = LLVM::SelectOp::create(rewriter, loc, valid, source, lane);
    Value sourceThread =
        LLVM::AddOp::create(rewriter, loc, LLVM::SubOp::create(rewriter, loc, thread, lane), chosen);
    // The last warp of a block may be partial: a thread that does not exist has no value.
    Value exists = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::ult, sourceThread,
                                        blockThreads(rewriter, op));
    sourceThread = LLVM::SelectOp::create(rewriter, loc, exists, sourceThread, thread);

    Value word = adaptor.getValue();
    if (!type.isInteger())
      word = LLVM::BitcastOp::create(rewriter, loc, rewriter.getIntegerType(bits), word);
    if (bits < 64)
      word = LLVM::ZExtOp::create(rewriter, loc, i64, word);
    Value result = callStandIn(rewriter, loc, op, kExchange, i64, {word, sourceThread});
    if (bits < 64)
      result = LLVM::TruncOp::create(rewriter, loc, rewriter.getIntegerType(bits), result);
    if (!type.isInteger())
      result = LLVM::BitcastOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, {result, valid});
    return success();
  }
};

struct DynamicSharedPattern : public ConvertOpToLLVMPattern<gpu::DynamicSharedMemoryOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::DynamicSharedMemoryOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(op.getContext());
    Value base = callStandIn(rewriter, loc, op, kDynamicShared, pointer);
    Value size = LLVM::ConstantOp::create(rewriter, loc, getIndexType(), rewriter.getIndexAttr(0));
    Value one = LLVM::ConstantOp::create(rewriter, loc, getIndexType(), rewriter.getIndexAttr(1));
    rewriter.replaceOp(op, {createMemRefDescriptor(loc, op.getType(), base, base, {size}, {one}, rewriter)});
    return success();
  }
};

/// Makes a gpu.func a func.func whose attributions are globals (workgroup) and allocas (private), so that the
/// standard function lowering applies; it expands memrefs as the GPU targets do.
void makePlainFunction(gpu::GPUFuncOp kernel) {
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  auto function = func::FuncOp::create(builder, loc, kernel.getName(), kernel.getFunctionType());
  if (kernel.isKernel())
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  else
    function.setPrivate();

  Block &entry = kernel.getBody().front();
  OpBuilder inside = OpBuilder::atBlockBegin(&entry);
  unsigned number = 0;
  for (BlockArgument attribution : kernel.getWorkgroupAttributions()) {
    std::string name = (kSharedPrefix + kernel.getName() + "_" + Twine(number++)).str();
    auto type = cast<MemRefType>(attribution.getType());
    memref::GlobalOp::create(builder, loc, name, builder.getStringAttr("private"), type,
                             builder.getUnitAttr(),
                             /*constant=*/false, /*alignment=*/builder.getI64IntegerAttr(64));
    attribution.replaceAllUsesWith(memref::GetGlobalOp::create(inside, loc, type, name));
  }
  for (BlockArgument attribution : kernel.getPrivateAttributions())
    attribution.replaceAllUsesWith(
        memref::AllocaOp::create(inside, loc, cast<MemRefType>(attribution.getType())));
  entry.eraseArguments(kernel.getNumArguments(), entry.getNumArguments() - kernel.getNumArguments());
  kernel.walk([](gpu::ReturnOp op) {
    OpBuilder b(op);
    func::ReturnOp::create(b, op.getLoc(), op.getOperands());
    op.erase();
  });
  function.getBody().takeBody(kernel.getBody());
  kernel.erase();
}

/// Module-level memory in the workgroup space gets the prefix that marks it.
void markWorkgroupGlobals(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>())) {
    auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(global.getType().getMemorySpace());
    if (space && space.getValue() == gpu::AddressSpace::Workgroup &&
        !global.getName().starts_with(kSharedPrefix))
      (void)symbols.rename(global, (kSharedPrefix + global.getName()).str());
  }
}

struct GpuToHost : public PassWrapper<GpuToHost, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GpuToHost)

  GpuToHost() = default;
  GpuToHost(const GpuToHost &other) : PassWrapper(other) {}
  Option<unsigned> indexBitwidth{*this, "index-bitwidth", llvm::cl::desc("Bits of index"),
                                 llvm::cl::init(64)};
  Option<bool> barePointers{*this, "use-bare-ptr-memref-call-conv",
                            llvm::cl::desc("Memref arguments are plain pointers"), llvm::cl::init(false)};

  StringRef getArgument() const final { return "offload-gpu-to-host"; }
  StringRef getDescription() const final { return "Lower a gpu.module for execution on the CPU"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registerConvertToLLVMDependentDialectLoading(registry);
    registry.insert<func::FuncDialect, LLVM::LLVMDialect, memref::MemRefDialect, cf::ControlFlowDialect>();
  }

  void runOnOperation() final {
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();

    RewritePatternSet rewrites(context);
    populateGpuRewritePatterns(rewrites);
    populateGpuBreakDownSubgroupReducePatterns(rewrites, /*maxShuffleBitwidth=*/64, PatternBenefit(2));
    populateGpuLowerSubgroupReduceToShufflePatterns(rewrites, kWarpSize, /*shuffleBitwidth=*/64);
    populateGpuLowerClusteredSubgroupReduceToShufflePatterns(rewrites, kWarpSize, /*shuffleBitwidth=*/64);
    if (failed(applyPatternsGreedily(module, std::move(rewrites))))
      return signalPassFailure();

    // Checked here because the standard lowering of an assertion aborts the whole process.
    bool refused = module
                       ->walk([](cf::AssertOp op) {
                         op.emitOpError("in a kernel is not supported by the host target");
                         return WalkResult::interrupt();
                       })
                       .wasInterrupted();
    if (refused)
      return signalPassFailure();

    for (auto kernel : llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>()))
      makePlainFunction(kernel);
    markWorkgroupGlobals(module);
    // As the other targets' lowerings do: what is declared here and takes memrefs is called by its C
    // interface.
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isExternal())
        function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(), UnitAttr::get(context));

    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(indexBitwidth);
    options.useBarePtrCallConv = barePointers;
    LLVMTypeConverter converter(context, options);
    populateGpuMemorySpaceAttributeConversions(converter, [](gpu::AddressSpace) { return 0; });
    LLVMConversionTarget target(*context);
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    RewritePatternSet patterns(context);
    for (Dialect *dialect : context->getLoadedDialects())
      if (auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect))
        interface->populateConvertToLLVMConversionPatterns(target, converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    patterns.add<IdPattern<gpu::ThreadIdOp>>(converter, kThreadId);
    patterns.add<IdPattern<gpu::BlockIdOp>>(converter, kBlockId);
    patterns.add<IdPattern<gpu::BlockDimOp>>(converter, kBlockDim);
    patterns.add<IdPattern<gpu::GridDimOp>>(converter, kGridDim);
    patterns.add<WarpPattern<gpu::LaneIdOp>, WarpPattern<gpu::SubgroupIdOp>, WarpPattern<gpu::NumSubgroupsOp>,
                 WarpPattern<gpu::SubgroupSizeOp>, BarrierPattern, ShufflePattern, DynamicSharedPattern>(
        converter);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void registerGpuToHostPass() { PassRegistration<GpuToHost>(); }

} // namespace offload
