//===- gpu_to_host.cpp - offload-gpu-to-host ------------------------------===//
//
// The device side of the host target: lowers one gpu.module to the LLVM dialect. GPU operations become calls
// to the functions of names.h, to which spmd.cpp gives their meaning once the module is LLVM IR; workgroup
// memory becomes globals with a known prefix. All memory spaces are one flat space here.
//
//===----------------------------------------------------------------------===//

#include "cpu/spmd_abi.h"
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
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

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

Value standIn32(OpBuilder &builder, Operation *op, StringRef prefix, StringRef axis) {
  return callStandIn(builder, op->getLoc(), op, (prefix + axis).str(), builder.getI32Type());
}

/// An i32 as the value of an operation of type index, which has 32 or 64 bits here.
void replaceByIndex(ConversionPatternRewriter &rewriter, Operation *op, Type index, Value value) {
  if (value.getType() == index)
    rewriter.replaceOp(op, value);
  else
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, index, value);
}

/// thread_id, block_id, block_dim, grid_dim, cluster_dim_blocks.
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

/// cluster_id, cluster_block_id, cluster_dim, from the blocks' ids and the cluster's size.
template <typename Op> struct ClusterPattern : public ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    StringRef axis = suffix(op.getDimension());
    Value size = standIn32(rewriter, op, kClusterDim, axis), value;
    if constexpr (std::is_same_v<Op, gpu::ClusterDimOp>)
      value = LLVM::UDivOp::create(rewriter, loc, standIn32(rewriter, op, kGridDim, axis), size);
    else if constexpr (std::is_same_v<Op, gpu::ClusterIdOp>)
      value = LLVM::UDivOp::create(rewriter, loc, standIn32(rewriter, op, kBlockId, axis), size);
    else
      value = LLVM::URemOp::create(rewriter, loc, standIn32(rewriter, op, kBlockId, axis), size);
    replaceByIndex(rewriter, op, this->getTypeConverter()->getIndexType(), value);
    return success();
  }
};

/// The thread's number in its block, x fastest, and from it the lane.
struct LanePattern : public ConvertOpToLLVMPattern<gpu::LaneIdOp> {
  LanePattern(const LLVMTypeConverter &converter, unsigned subgroupSize)
      : ConvertOpToLLVMPattern(converter), subgroupSize(subgroupSize) {}
  LogicalResult matchAndRewrite(gpu::LaneIdOp op, OpAdaptor, ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = standIn32(b, op, kThreadId, "x"), y = standIn32(b, op, kThreadId, "y"),
          z = standIn32(b, op, kThreadId, "z"), dx = standIn32(b, op, kBlockDim, "x"),
          dy = standIn32(b, op, kBlockDim, "y");
    Value plane = LLVM::AddOp::create(b, loc, LLVM::MulOp::create(b, loc, z, dy), y);
    Value thread = LLVM::AddOp::create(b, loc, LLVM::MulOp::create(b, loc, plane, dx), x);
    Value size = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(int32_t(subgroupSize)));
    b.replaceOpWithNewOp<LLVM::ZExtOp>(op, getTypeConverter()->getIndexType(),
                                       LLVM::URemOp::create(b, loc, thread, size));
    return success();
  }
  const unsigned subgroupSize;
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

/// What kArrays says of a kernel's parameters, which memrefs are expanded into.
std::string describeArrays(gpu::GPUFuncOp kernel) {
  std::string text;
  unsigned number = 0;
  for (Type type : kernel.getArgumentTypes()) {
    if (auto array = dyn_cast<MemRefType>(type)) {
      text += (text.empty() ? "" : ",") + std::to_string(number + 1) + ":" + std::to_string(array.getRank());
      number += 3 + 2 * unsigned(array.getRank());
    } else {
      number += isa<UnrankedMemRefType>(type) ? 2 : 1;
    }
  }
  return text;
}

/// Makes a gpu.func a func.func whose attributions are globals (workgroup) and allocas (private), so that the
/// standard function lowering applies; it expands memrefs as the GPU targets do.
void makePlainFunction(gpu::GPUFuncOp kernel, bool barePointers) {
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  auto function = func::FuncOp::create(builder, loc, kernel.getName(), kernel.getFunctionType());
  if (kernel.isKernel())
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  else
    function.setPrivate();
  // Attributes of this kind stay until LLVM IR.
  SmallVector<Attribute> described;
  auto describe = [&](StringRef name, std::optional<ArrayRef<int32_t>> sizes) {
    if (!sizes)
      return;
    std::string text =
        llvm::join(llvm::map_range(*sizes, [](int32_t size) { return std::to_string(size); }), ",");
    described.push_back(builder.getStrArrayAttr({name, text}));
  };
  describe(kKnownBlock, kernel.getKnownBlockSize());
  describe(kKnownCluster, kernel.getKnownClusterSize());
  if (kernel.isKernel() && !barePointers)
    described.push_back(builder.getStrArrayAttr({kArrays, describeArrays(kernel)}));
  if (!described.empty())
    function->setAttr("passthrough", builder.getArrayAttr(described));

  Block &entry = kernel.getBody().front();
  OpBuilder inside = OpBuilder::atBlockBegin(&entry);
  unsigned number = 0;
  Operation *module = kernel->getParentOp();
  for (BlockArgument attribution : kernel.getWorkgroupAttributions()) {
    // The author's own memory gets the prefix later (markWorkgroupGlobals).
    std::string own, name;
    do {
      own = (kernel.getName() + "_" + Twine(number++)).str();
      name = (kSharedPrefix + Twine(own)).str();
    } while (SymbolTable::lookupSymbolIn(module, own) || SymbolTable::lookupSymbolIn(module, name));
    auto type = cast<MemRefType>(attribution.getType());
    memref::GlobalOp::create(builder, loc, name, builder.getStringAttr("private"), type,
                             builder.getUnitAttr(),
                             /*constant=*/false, /*alignment=*/builder.getI64IntegerAttr(64));
    attribution.replaceAllUsesWith(memref::GetGlobalOp::create(inside, loc, type, name));
  }
  for (auto [i, memory] : llvm::enumerate(kernel.getPrivateAttributions())) {
    Value attribution = memory;
    Attribute alignment = kernel.getPrivateAttributionAttr(int(i), LLVM::LLVMDialect::getAlignAttrName());
    attribution.replaceAllUsesWith(memref::AllocaOp::create(
        inside, loc, cast<MemRefType>(attribution.getType()), dyn_cast_or_null<IntegerAttr>(alignment)));
  }
  entry.eraseArguments(kernel.getNumArguments(), entry.getNumArguments() - kernel.getNumArguments());
  kernel.walk([](gpu::ReturnOp op) {
    OpBuilder b(op);
    func::ReturnOp::create(b, op.getLoc(), op.getOperands());
    op.erase();
  });
  function.getBody().takeBody(kernel.getBody());
  kernel.erase();
}

struct GpuToHost : public PassWrapper<GpuToHost, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GpuToHost)

  GpuToHost() = default;
  GpuToHost(const GpuToHost &other) : PassWrapper(other) {}
  Option<unsigned> indexBitwidth{*this, "index-bitwidth", llvm::cl::desc("Bits of index"),
                                 llvm::cl::init(64)};
  Option<bool> barePointers{*this, "use-bare-ptr-memref-call-conv",
                            llvm::cl::desc("Memref arguments are plain pointers"), llvm::cl::init(false)};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("Threads of a warp"),
                                llvm::cl::init(32)};

  StringRef getArgument() const final { return "offload-gpu-to-host"; }
  StringRef getDescription() const final { return "Lower a gpu.module for execution on the CPU"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registerConvertToLLVMDependentDialectLoading(registry);
    registry.insert<func::FuncDialect, LLVM::LLVMDialect, memref::MemRefDialect, cf::ControlFlowDialect>();
  }

  void runOnOperation() final {
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();

    for (auto kernel : llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>()))
      makePlainFunction(kernel, barePointers);
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
    patterns.add<IdPattern<gpu::ClusterDimBlocksOp>>(converter, kClusterDim);
    patterns.add<ClusterPattern<gpu::ClusterDimOp>, ClusterPattern<gpu::ClusterIdOp>,
                 ClusterPattern<gpu::ClusterBlockIdOp>, BarrierPattern, DynamicSharedPattern>(converter);
    patterns.add<LanePattern>(converter, subgroupSize);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void registerGpuToHostPass() { PassRegistration<GpuToHost>(); }

} // namespace offload
