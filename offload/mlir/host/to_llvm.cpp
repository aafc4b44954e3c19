//===- to_llvm.cpp - offload-host-to-llvm ---------------------------------===//
//
// Lowers host code to the LLVM dialect; the gpu dialect's host operations become calls to the mgpu runtime
// (mgpu.h). Differences from upstream's gpu-to-llvm:
//
//  * An async token is a stream, everywhere: through block arguments, loops and calls. An operation with
//  several
//    dependencies runs on the first one's stream after waiting for the others. Streams belong to a scope of
//    the function that created them (mgpuScope) and go back when it returns; waiting for a token twice is
//    fine.
//  * Operations without a token run on the calling thread's own stream, and the host waits for them: once for
//    kernels that follow each other (wait_once.cpp).
//  * A launch names a kernel slot; the runtime loads the module when it is first needed. No constructors.
//  * Argument arrays live in the entry block: a launch in a loop does not grow the stack.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "names.h"
#include "passes.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kScopeBytes = 16 + 8 * 14; // sizeof(mgpuScope)

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

struct SetDevicePattern : public ConvertOpToLLVMPattern<gpu::SetDefaultDeviceOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(gpu::SetDefaultDeviceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    callRuntime(rewriter, op, "mgpuSetDefaultDevice", {}, {adaptor.getDevIndex()});
    rewriter.eraseOp(op);
    return success();
  }
};

bool isToken(Type type) { return isa<gpu::AsyncTokenType>(type); }

/// Gives each function that makes tokens a scope, ended on every return. A token that a function returns is
/// waited for first: its stream goes back with the scope. What the caller gets stands for work that is done,
/// so it takes a stream of its own scope instead. So is all else where some way leaves a token alone.
void addScopes(ModuleOp module) {
  module.walk([&](FunctionOpInterface function) {
    if (function->getParentOp() != module || function.isExternal() ||
        !isa<func::FuncOp, LLVM::LLVMFuncOp>(function))
      return;
    SmallVector<Operation *> returns;
    function.walk([&](Operation *op) {
      if (isa<func::ReturnOp, LLVM::ReturnOp>(op) && op->getParentOp() == function)
        returns.push_back(op);
      auto call = dyn_cast<CallOpInterface>(op);
      if (!call)
        return;
      OpBuilder b(call->getContext());
      b.setInsertionPointAfter(call);
      for (Value result : call->getResults())
        if (isToken(result.getType()))
          result.replaceAllUsesWith(
              gpu::WaitOp::create(b, call.getLoc(), result.getType(), ValueRange()).getAsyncToken());
    });
    for (Operation *op : returns) {
      SmallVector<Value> tokens = llvm::to_vector(llvm::make_filter_range(
          op->getOperands(), [](Value operand) { return isToken(operand.getType()); }));
      OpBuilder atReturn(op);
      if (!tokens.empty())
        gpu::WaitOp::create(atReturn, op->getLoc(), Type(), tokens);
    }
    bool makesTokens = function
                           .walk([](Operation *op) {
                             return llvm::any_of(op->getResultTypes(), isToken) ? WalkResult::interrupt()
                                                                                : WalkResult::advance();
                           })
                           .wasInterrupted();
    if (!makesTokens)
      return;
    Location loc = function.getLoc();
    OpBuilder b = OpBuilder::atBlockBegin(&function.getFunctionBody().front());
    Type bytes = LLVM::LLVMArrayType::get(b.getI8Type(), kScopeBytes);
    Value one = constant(b, loc, b.getI64Type(), 1);
    auto scope = LLVM::AllocaOp::create(b, loc, pointerType(b.getContext()), bytes, one, /*alignment=*/16);
    scope->setAttr(kScope, b.getUnitAttr());
    LLVM::StoreOp::create(b, loc, LLVM::ZeroOp::create(b, loc, bytes), scope);
    bool waits = waitsForAllTokens(function);
    for (Operation *op : returns) {
      OpBuilder atReturn(op);
      if (!waits)
        callRuntime(atReturn, op, "mgpuScopeWait", {}, {scope});
      callRuntime(atReturn, op, "mgpuScopeEnd", {}, {scope});
    }
  });
}

/// The C interface of a function only calls it: with a copy of the body in each, both of which others see,
/// half of the host code would be compiled twice. A program that has such a function itself may ask for a
/// copy.
void callFromInterfaces(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function.getName().starts_with(kInterface))
      function.walk([](LLVM::CallOp call) { call.setNoInline(!call.getAlwaysInline()); });
}

/// The functions that had to give their names to those of the C library (input/library_names.cpp): their
/// names now, and those that their interfaces get.
using NamedFunctions = SmallVector<std::pair<std::string, std::string>>;

NamedFunctions findNamedFunctions(ModuleOp module) {
  NamedFunctions found;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto name = function->getAttrOfType<StringAttr>(kNamed)) {
      found.emplace_back(function.getName().str(), name.str());
      function->removeAttr(kNamed);
    }
  return found;
}

/// C calls functions with bare pointers by their own names.
LogicalResult refuseNamedFunctions(ModuleOp module) {
  LogicalResult result = success();
  for (auto function : module.getOps<func::FuncOp>())
    if (auto name = function->getAttrOfType<StringAttr>(kNamed))
      result = function->emitError("C cannot call this function, as its library has one named '")
               << name.getValue() << "', too: rename it, or build without bare pointers for the host";
  return result;
}

void nameInterfaces(ModuleOp module, const NamedFunctions &functions) {
  for (const auto &[own, name] : functions)
    module.lookupSymbol<LLVM::LLVMFuncOp>(kInterface + own).setSymName(kInterface + name);
}

/// A bool of C is a byte that is 0 or 1; of an i1, LLVM gives away its lowest bit and whatever stands beside
/// it.
void extendBooleans(ModuleOp module) {
  MLIRContext *context = module.getContext();
  StringRef name = LLVM::LLVMDialect::getZExtAttrName();
  auto extended = DictionaryAttr::get(context, NamedAttribute(name, UnitAttr::get(context)));
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal() && function.getFunctionType().getReturnType().isInteger(1))
      function.setResultAttr(0, name, UnitAttr::get(context));
  SymbolTableCollection symbols;
  module.walk([&](LLVM::CallOp call) {
    auto callee = dyn_cast_or_null<LLVM::LLVMFuncOp>(call.resolveCallableInTable(&symbols));
    auto isBoolean = [](Type type) { return type.isInteger(1); };
    if (!callee || !callee.isExternal() || call.getArgAttrsAttr() ||
        llvm::none_of(call.getArgOperands().getTypes(), isBoolean))
      return;
    SmallVector<Attribute> attributes;
    for (Type type : call.getArgOperands().getTypes())
      attributes.push_back(isBoolean(type) ? extended : DictionaryAttr::get(context));
    call.setArgAttrsAttr(ArrayAttr::get(context, attributes));
  });
}

struct HostToLLVM : public PassWrapper<HostToLLVM, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostToLLVM)

  HostToLLVM() = default;
  HostToLLVM(const HostToLLVM &other) : PassWrapper(other) {}
  Option<bool> barePointers{*this, "use-bare-pointers-for-kernels",
                            llvm::cl::desc("Kernels take plain pointers for memrefs"), llvm::cl::init(false)};
  Option<bool> hostBarePointers{*this, "use-bare-pointers-for-host",
                                llvm::cl::desc("So do the functions that others call, and declared ones"),
                                llvm::cl::init(false)};

  StringRef getArgument() const final { return "offload-host-to-llvm"; }
  StringRef getDescription() const final { return "Lower host code to LLVM with calls to the mgpu runtime"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registerConvertToLLVMDependentDialectLoading(registry);
    registry.insert<LLVM::LLVMDialect, cf::ControlFlowDialect>();
  }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    if (failed(refuseKernelOperations(module)))
      return signalPassFailure();
    addSlots(module);
    llvm::StringSet<> shared; // the attribute does not survive the global's conversion
    for (auto global : module.getOps<memref::GlobalOp>()) {
      if (global->hasAttr(kSharedGlobal))
        shared.insert(global.getSymName());
      if (global.isExternal()) // LLVM has no private declarations: it would be memory of anything
        global.setPublic();
    }
    SmallVector<Operation *> waiting = orderUses(module);
    addScopes(module);
    addLaunchMemory(module);
    for (Operation *op : waiting) {
      OpBuilder b(op);
      callRuntime(b, op, "mgpuScopeWait", {}, {scopeOf(op)});
    }
    waitOnce(module);
    markEqualShapes(module);
    if (hostBarePointers && failed(refuseNamedFunctions(module)))
      return signalPassFailure();
    NamedFunctions namedFunctions = findNamedFunctions(module);
    BareFunctions bareFunctions;
    if (hostBarePointers && failed(findBareFunctions(module, bareFunctions)))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(64);
    LLVMTypeConverter converter(context, options);
    converter.addConversion([context](gpu::AsyncTokenType) { return pointerType(context); });
    addSizeChecks(module, converter);
    LLVMConversionTarget target(*context);
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp, gpu::BinaryOp>();
    target.markOpRecursivelyLegal<gpu::GPUModuleOp>();
    RewritePatternSet patterns(context);
    for (Dialect *dialect : context->getLoadedDialects())
      if (auto *interface = dyn_cast<ConvertToLLVMPatternInterface>(dialect))
        if (!isa<gpu::GPUDialect>(dialect))
          interface->populateConvertToLLVMConversionPatterns(target, converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    patterns.add<WaitPattern, SetDevicePattern>(converter);
    populateMemoryPatterns(converter, patterns);
    populateGlobalPatterns(converter, patterns, shared);
    populateLaunchPatterns(converter, patterns, barePointers);
    populateAssertPatterns(converter, patterns);
    populateSparseOperandPatterns(converter, patterns);
    populateSparseProductPatterns(converter, patterns);
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    giveBarePointers(module, bareFunctions, converter);
    callFromInterfaces(module);
    guardEntryPoints(module);
    nameInterfaces(module, namedFunctions);
    extendBooleans(module);
    // Launches go by names, and the images stand in the library's container.
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<gpu::GPUModuleOp, gpu::BinaryOp>(op))
        op.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};

} // namespace

void registerHostToLLVMPass() { PassRegistration<HostToLLVM>(); }

} // namespace offload
