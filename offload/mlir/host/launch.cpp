//===- launch.cpp - Kernel launches in host code --------------------------===//
//
// gpu.launch_func becomes a call of mgpuKernelLaunch with a slot: the runtime loads the kernel's module when
// it is first needed and keeps the handle. addSlots makes the slots and the table of modules.
//
// A launch takes what it passes from memory, and where each value lies there from a list. One of both serves
// all launches of a function: each has copied the values when it returns, and the list, of words one behind
// the other, is the same for all. Launches that pass longer values have their own.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "names.h"
#include "program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {
namespace {

/// Names may have dots, too: then it is told where the module's ends.
std::string kernelSlotName(SymbolRefAttr kernel) {
  StringRef module = kernel.getRootReference().getValue(), name = kernel.getLeafReference().getValue();
  std::string end =
      module.contains('.') || name.contains('.') ? "[" + std::to_string(module.size()) + "]" : "";
  return ("offload_kernel." + end + module + "." + name).str();
}

bool isWord(Type type) {
  return type.isIndex() || isa<BaseMemRefType, LLVM::LLVMPointerType>(type) ||
         (type.isIntOrFloat() && type.getIntOrFloatBitWidth() <= 64);
}

bool passesWords(gpu::LaunchFuncOp launch) {
  return launch.getNumKernelOperands() && llvm::all_of(launch.getKernelOperands().getTypes(), isWord);
}

/// Memory of the function around a launch that addLaunchMemory has made.
Value launchMemory(Operation *launch, StringRef mark) {
  auto function = launch->getParentOfType<FunctionOpInterface>();
  for (auto candidate : function.getFunctionBody().front().getOps<LLVM::AllocaOp>())
    if (candidate->hasAttr(mark))
      return candidate;
  llvm_unreachable("addLaunchMemory gives it to every function with such launches");
}

/// Stores what a launch passes, and returns the list of where that is.
Value storeArguments(OpBuilder &b, gpu::LaunchFuncOp op, ValueRange arguments) {
  Location loc = op.getLoc();
  Type pointer = pointerType(b.getContext());
  if (passesWords(op)) {
    Value values = launchMemory(op, kLaunchValues);
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      Value word =
          LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), values, ArrayRef<LLVM::GEPArg>{int32_t(i)});
      LLVM::StoreOp::create(b, loc, argument, word);
    }
    return launchMemory(op, kLaunchPlaces);
  }
  auto record = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(arguments.getTypes()));
  Value values = entryAlloca(b, op, record, 1);
  Value places = entryAlloca(b, op, pointer, int64_t(arguments.size()));
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    Value field = LLVM::GEPOp::create(b, loc, pointer, record, values, ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
    LLVM::StoreOp::create(b, loc, argument, field);
    Value place = LLVM::GEPOp::create(b, loc, pointer, pointer, places, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, field, place);
  }
  return places;
}

struct LaunchPattern : public HostPattern<gpu::LaunchFuncOp> {
  LaunchPattern(const LLVMTypeConverter &converter, bool barePointers)
      : HostPattern(converter), barePointers(barePointers) {}
  LogicalResult matchAndRewrite(gpu::LaunchFuncOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type pointer = pointerType(getContext()), i64 = rewriter.getI64Type(), i32 = rewriter.getI32Type();

    // A kernel that came lowered says itself what it takes, whatever the build's other kernels do.
    SmallVector<Value> arguments(
        getTypeConverter()->promoteOperands(loc, op.getKernelOperands(), adaptor.getKernelOperands(),
                                            rewriter, takesPlainPointers(op).value_or(barePointers)));
    size_t count = arguments.size();
    Value params = count ? storeArguments(rewriter, op, arguments) : null(rewriter, loc);

    Stream stream = streamOf(rewriter, op, adaptor);
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
    enum { No, Now, Later }; // mgpu.h
    int64_t wait = !stream.wait ? No : op->hasAttr(kWaitsLater) ? Later : Now;
    Value slot = LLVM::AddressOfOp::create(rewriter, loc, pointer, kernelSlotName(op.getKernel()));
    callRuntime(rewriter, op, "mgpuKernelLaunch", {},
                {slot, dimension(adaptor.getGridSizeX()), dimension(adaptor.getGridSizeY()),
                 dimension(adaptor.getGridSizeZ()), dimension(adaptor.getBlockSizeX()),
                 dimension(adaptor.getBlockSizeY()), dimension(adaptor.getBlockSizeZ()),
                 dimension(adaptor.getClusterSizeX()), dimension(adaptor.getClusterSizeY()),
                 dimension(adaptor.getClusterSizeZ()), shared, stream.value, params,
                 constant(rewriter, loc, i64, int64_t(count)), constant(rewriter, loc, i32, wait)});
    finish(rewriter, op, stream);
    return success();
  }
  bool barePointers; // memref arguments are plain pointers
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

} // namespace

void addLaunchMemory(ModuleOp module) {
  llvm::MapVector<Operation *, unsigned> most; // words that launches of a function pass
  module.walk([&](gpu::LaunchFuncOp launch) {
    if (passesWords(launch)) {
      unsigned &words = most[launch->getParentOfType<FunctionOpInterface>()];
      words = std::max(words, wordsOf(launch));
    }
  });
  for (auto [function, words] : most) {
    Location loc = function->getLoc();
    OpBuilder b = OpBuilder::atBlockBegin(&cast<FunctionOpInterface>(function).getFunctionBody().front());
    Type pointer = pointerType(b.getContext()), word = b.getI64Type();
    Value count = constant(b, loc, word, words);
    auto values = LLVM::AllocaOp::create(b, loc, pointer, word, count, /*alignment=*/16);
    auto places = LLVM::AllocaOp::create(b, loc, pointer, pointer, count, /*alignment=*/16);
    values->setAttr(kLaunchValues, b.getUnitAttr());
    places->setAttr(kLaunchPlaces, b.getUnitAttr());
    for (int32_t i = 0; i < int32_t(words); ++i) {
      Value value = LLVM::GEPOp::create(b, loc, pointer, word, values, ArrayRef<LLVM::GEPArg>{i});
      Value place = LLVM::GEPOp::create(b, loc, pointer, pointer, places, ArrayRef<LLVM::GEPArg>{i});
      LLVM::StoreOp::create(b, loc, value, place);
    }
  }
}

void addSlots(ModuleOp module) {
  MLIRContext *context = module.getContext();
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Location loc = module.getLoc();
  Type pointer = pointerType(context);

  SmallVector<StringAttr> modules;
  for (Operation &op : *module.getBody())
    if (isa<gpu::GPUModuleOp, gpu::BinaryOp>(op))
      modules.push_back(cast<SymbolOpInterface>(op).getNameAttr());
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
    for (auto [i, symbol] : llvm::enumerate(modules)) {
      StringRef name = symbol.getValue();
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
    int32_t row = int32_t(llvm::find(modules, launch.getKernelModuleName()) - modules.begin());
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

void populateLaunchPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns,
                            bool barePointers) {
  patterns.add<LaunchPattern>(converter, barePointers);
}

} // namespace offload
